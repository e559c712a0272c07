#include "mpi/pool/mpi_worker_pool.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

std::uint64_t id_of(const json::object& content) {
  return content.at("id").to_number<std::uint64_t>();
}

bool is_failure(const Outcome& outcome, FailureKind kind) {
  const auto* failed = std::get_if<Failed>(&outcome);
  return failed != nullptr && failed->kind == kind;
}

std::string hardware_of(const WorkerInfo& info) {
  std::vector<std::string> names;
  for (const DeviceInfo& device : info.devices) names.push_back(device.name);
  return join(names, "; ");
}

}  // namespace

MpiWorkerPool::MpiWorkerPool(const Communicator& world, PoolOptions options)
    : options_(std::move(options)),
      mailbox_(world),
      roster_(world.size(), describe_this_process(0)),
      said_bye_(static_cast<std::size_t>(world.size()), false) {
  const bool complete = wait_until(options_.start_timeout,
                                   [this] { return roster_.count(WorkerState::absent) == 0; });
  changed_ = false;
  if (complete) return;
  for (const auto& worker : roster_.all()) {
    if (worker.state != WorkerState::absent) continue;
    log_warning(concat("rank ", worker.info.rank, " did not report within ",
                       format_seconds(options_.start_timeout), "; going on without it"));
  }
}

Seconds MpiWorkerPool::now() {
  awake_.listened(steady_now());
  return awake_.length();
}

std::vector<Worker> MpiWorkerPool::idle() const {
  std::vector<Worker> workers;
  for (const auto& worker : roster_.all()) {
    if (worker.state != WorkerState::idle) continue;
    workers.push_back({worker.info.rank, worker.info.host, hardware_of(worker.info)});
  }
  std::sort(workers.begin(), workers.end(), [](const Worker& a, const Worker& b) {
    return std::tie(a.host, a.rank) < std::tie(b.host, b.rank);
  });
  return workers;
}

int MpiWorkerPool::size() const {
  return roster_.count(WorkerState::idle) + roster_.count(WorkerState::busy);
}

std::vector<WorkerInfo> MpiWorkerPool::workers() const {
  std::vector<WorkerInfo> infos;
  for (const auto& worker : roster_.all()) {
    if (worker.info.pid != 0) infos.push_back(worker.info);
  }
  return infos;
}

void MpiWorkerPool::start(std::uint64_t id, const Experiment& experiment,
                          const std::vector<int>& ranks) {
  if (id == 0 || find(id) != nullptr) throw Error(concat("experiment id ", id, " is in use"));
  if (ranks.empty() || static_cast<int>(ranks.size()) != experiment.ranks) {
    throw Error(concat(experiment.name, " needs ", experiment.ranks, " ranks, not ", ranks.size()));
  }
  for (const int rank : ranks) {
    if (roster_.at(rank).state != WorkerState::idle) {
      throw Error(concat(experiment.name, ": ", roster_.name(rank), " is not idle"));
    }
  }
  const json::object order = {{"id", id},
                              {"ranks", json::array(ranks.begin(), ranks.end())},
                              {"experiment", to_json(experiment)}};
  for (const int rank : ranks) {
    roster_.at(rank).state = WorkerState::busy;
    roster_.at(rank).experiment = id;
    mailbox_.send(rank, MessageKind::experiment, order);
  }
  Running& running = running_.emplace_back();
  running.id = id;
  running.name = experiment.name;
  running.ranks = ranks;
  running.time_limit = experiment.settings.experiment_timeout;
  for (const int rank : ranks) running.oom_kills[rank] = roster_.oom_kills(rank);
}

void MpiWorkerPool::retire(int rank) { roster_.dismiss(rank); }

std::vector<Completion> MpiWorkerPool::wait() {
  for (Backoff backoff;;) {
    const bool traffic = poll();
    if (while_waiting_) while_waiting_();
    const bool interrupted = options_.interrupted && options_.interrupted();
    const bool wake = std::exchange(saw_interrupt_, interrupted) != interrupted;
    if (!completed_.empty() || changed_ || wake || running_.empty()) {
      changed_ = false;
      return std::exchange(completed_, {});
    }
    if (traffic) {
      backoff.reset();
    } else {
      backoff.pause();
    }
  }
}

void MpiWorkerPool::stay_in_touch() {
  poll();
  if (while_waiting_) while_waiting_();
}

bool MpiWorkerPool::poll() {
  bool traffic = false;
  while (const auto message = mailbox_.receive()) {
    obey(*message);
    traffic = true;
  }
  const Seconds time = now();
  send_heartbeats(time);
  for (const auto& loss : roster_.find_losses(time, options_.worker_timeout)) lose(loss);
  look_after(time);
  return traffic;
}

bool MpiWorkerPool::wait_until(Seconds limit, const std::function<bool()>& done) {
  const Seconds begin = now();
  for (Backoff backoff; !done(); backoff.pause()) {
    if (now() - begin > limit) return false;
    if (poll()) backoff.reset();
  }
  return true;
}

void MpiWorkerPool::obey(const Message& message) {
  if (roster_.heard_from(message.from)) changed_ = true;
  if (const auto* kills = message.content.if_contains("oom_kills");
      kills != nullptr && message.kind != MessageKind::hello) {
    roster_.at(message.from).oom_kills = oom_kills_from_json(kills->as_object());
  }
  Running* running = message.content.contains("id") ? find(id_of(message.content)) : nullptr;
  switch (message.kind) {
    case MessageKind::hello:
      return welcome(message);
    case MessageKind::ready:
      if (running != nullptr && !running->outcome) give_go(*running);
      return;
    case MessageKind::outcome:
      if (running != nullptr && !running->outcome) {
        end(*running, outcome_from_json(message.content.at("outcome").as_object()));
      }
      return;
    case MessageKind::failed:
      return on_failure(message, running);
    case MessageKind::idle:
      return on_idle(message.from, id_of(message.content));
    case MessageKind::bye:
      said_bye_.at(static_cast<std::size_t>(message.from)) = true;
      return;
    default:
      return;
  }
}

void MpiWorkerPool::welcome(const Message& hello) {
  const auto lifeline = roster_.register_worker(worker_info_from_json(hello.content));
  json::object content = to_json(roster_.self());
  if (lifeline) content["lifeline"] = to_json(*lifeline);
  mailbox_.send(hello.from, MessageKind::welcome, content);
  changed_ = true;
}

void MpiWorkerPool::on_failure(const Message& message, Running* running) {
  Outcome outcome = failure_of(message);
  if (is_failure(outcome, FailureKind::device_lost)) {
    roster_.dismiss(message.from);
    log_warning(concat(std::get<Failed>(outcome).reason, "; the rank gets no more work"));
  }
  if (running == nullptr || running->outcome) return;
  if (is_failure(outcome, FailureKind::wrong_sums)) {
    std::get<Failed>(outcome).reason += concat(" (group of ", names(running->ranks), ")");
  }
  running->culprits = {message.from};
  end_early(*running, std::move(outcome));
}

Outcome MpiWorkerPool::failure_of(const Message& message) {
  Outcome outcome =
      Failed{FailureKind::error, std::string(message.content.at("reason").as_string())};
  if (const auto* told = message.content.if_contains("outcome")) {
    outcome = outcome_from_json(told->as_object());
  }
  if (auto* failed = std::get_if<Failed>(&outcome)) {
    failed->reason = concat(roster_.name(message.from), ": ", failed->reason);
  }
  return outcome;
}

std::string MpiWorkerPool::names(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) names.push_back(roster_.name(rank));
  return join(names, ", ");
}

void MpiWorkerPool::on_idle(int rank, std::uint64_t id) {
  WorkerEntry& worker = roster_.at(rank);
  if (worker.experiment != id) return;
  const bool was_away = worker.state != WorkerState::busy;
  roster_.rest(rank);
  if (!was_away || worker.state != WorkerState::idle) return;
  changed_ = true;
  log_line(concat(roster_.name(rank), " is back"));
}

void MpiWorkerPool::give_go(Running& running) {
  if (++running.ready < static_cast<int>(running.ranks.size())) return;
  running.tag = groups_.tag_of(running.ranks);
  running.go_time = now();
  for (const int rank : running.ranks) {
    mailbox_.send(rank, MessageKind::go, {{"id", running.id}, {"tag", running.tag}});
  }
  while (const auto old = groups_.evict()) {
    for (const int rank : old->ranks) mailbox_.send(rank, MessageKind::forget, {{"tag", old->tag}});
  }
}

void MpiWorkerPool::send_heartbeats(Seconds now) {
  if (now - last_heartbeat_ < options_.heartbeat) return;
  last_heartbeat_ = now;
  for (const auto& worker : roster_.all()) {
    if (worker.state == WorkerState::lost) continue;
    mailbox_.send(worker.info.rank, MessageKind::heartbeat);
  }
}

MpiWorkerPool::Running* MpiWorkerPool::find(std::uint64_t id) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& running) { return running.id == id; });
  return found == running_.end() ? nullptr : &*found;
}

}  // namespace dstune
