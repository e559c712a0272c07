#include "mpi/worker_link.hpp"

#include <utility>

#include "core/train/group.hpp"

namespace dstune {

namespace {

constexpr Seconds kLookEvery = 500e-6;

}  // namespace

WorkerLink::WorkerLink(const Communicator& world, const WorkerOptions& options)
    : options_(options), self_(describe_this_process(world.rank())), mailbox_(world) {
  say(MessageKind::hello, to_json(self_));
}

void WorkerLink::say(MessageKind kind, const json::object& content) {
  mailbox_.send(0, kind, content);
  last_word_ = steady_now();
}

void WorkerLink::poll() {
  const Seconds now = steady_now();
  if (now - last_look_ < kLookEvery) return;
  look(now);
  if (!running_) return;
  if (std::exchange(aborted_, false)) throw ExperimentAborted("rank 0 ended the experiment");
  if (orphaned_) throw ExperimentAborted("rank 0 is gone");
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
    say(MessageKind::heartbeat);
    if (rank0_pid_ && vanished(*rank0_pid_)) orphaned_ = true;
  }
  rank0_.listened(now);
  if (rank0_.length() > options_.lease) orphaned_ = true;
}

void WorkerLink::sort(Message message) {
  switch (message.kind) {
    case MessageKind::heartbeat:
      return;
    case MessageKind::welcome: {
      const WorkerInfo rank0 = worker_info_from_json(message.content);
      if (sees_process(self_, rank0)) rank0_pid_ = rank0.pid;
      return;
    }
    case MessageKind::abort:
      if (running_ && message.content.at("id").to_number<std::uint64_t>() == *running_) {
        aborted_ = true;
        return;
      }
      break;
    case MessageKind::stop:
      if (running_) aborted_ = true;
      break;
    default:
      break;
  }
  orders_.push_back(std::move(message));
}

}  // namespace dstune
