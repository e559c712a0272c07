#include "mpi/lifeline/worker_link.hpp"

#include <algorithm>
#include <utility>

#include "core/device/group.hpp"

namespace dstune {

namespace {

constexpr Seconds kLookEvery = 500e-6;

}  // namespace

WorkerLink::WorkerLink(const Communicator& world, const WorkerOptions& options)
    : options_(options),
      self_(describe_this_process(world.rank(), options.devices)),
      mailbox_(world) {
  say(MessageKind::hello, to_json(self_));
}

void WorkerLink::say(MessageKind kind, const json::object& content) {
  mailbox_.send(0, kind, content);
  last_word_ = steady_now();
}

void WorkerLink::begin(std::uint64_t id) {
  running_ = id;
  aborted_ = std::any_of(orders_.begin(), orders_.end(),
                         [this](const Message& order) { return ends_the_experiment(order); });
}

void WorkerLink::poll() {
  const Seconds now = steady_now();
  if (now - last_look_ >= kLookEvery) look(now);
  if (!running_) return;
  if (std::exchange(aborted_, false)) throw ExperimentAborted("rank 0 ended the experiment");
  if (lost()) throw ExperimentAborted("rank 0 is gone");
}

std::optional<Message> WorkerLink::next_order() {
  look(steady_now());
  if (orders_.empty()) return std::nullopt;
  Message order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

void WorkerLink::look(Seconds now) {
  last_look_ = now;
  while (auto message = mailbox_.receive()) {
    rank0_.broken();
    sort(std::move(*message));
  }
  if (now - last_word_ >= options_.heartbeat) {
    say(MessageKind::heartbeat, {{"oom_kills", to_json(count_oom_kills_in(group()))}});
    if (rank0_pid_ && vanished(*rank0_pid_)) orphaned_ = true;
  }
  rank0_.listened(now);
  if (rank0_.length() > options_.lease) cut_off_ = true;
}

void WorkerLink::sort(Message message) {
  switch (message.kind) {
    case MessageKind::heartbeat:
      return;
    case MessageKind::welcome: {
      const WorkerInfo rank0 = worker_info_from_json(message.content);
      if (sees_process(self_, rank0)) rank0_pid_ = rank0.pid;
      if (options_.met_rank0) options_.met_rank0(self_, rank0);
      const auto* lifeline = message.content.if_contains("lifeline");
      if (lifeline != nullptr && options_.offered_lifeline) {
        options_.offered_lifeline(lifeline_address_from_json(lifeline->as_object()), self_.rank);
      }
      return;
    }
    case MessageKind::stop:
    case MessageKind::leave:
      if (options_.told_to_stop) options_.told_to_stop();
      [[fallthrough]];
    default:
      if (ends_the_experiment(message)) aborted_ = true;
      orders_.push_back(std::move(message));
  }
}

// An abort stays among the orders as well; the loop drops it there, because by then it no longer
// runs the experiment.
bool WorkerLink::ends_the_experiment(const Message& message) const {
  if (!running_) return false;
  if (message.kind == MessageKind::stop) return true;
  return message.kind == MessageKind::abort &&
         message.content.at("id").to_number<std::uint64_t>() == *running_;
}

}  // namespace dstune
