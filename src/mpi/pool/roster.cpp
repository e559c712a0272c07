#include "mpi/pool/roster.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr Seconds kLookAround = 0.02;
// The silence, in seconds, after which a worker whose line is broken is lost: two heartbeats,
// instead of the time-out.
constexpr Seconds kSilenceOfBroken = 4.5;

}  // namespace

Roster::Roster(int world_size, WorkerInfo self) : self_(std::move(self)) {
  for (int rank = 1; rank < world_size; ++rank) {
    workers_.emplace_back().info.rank = rank;
  }
}

std::optional<LifelineAddress> Roster::register_worker(const WorkerInfo& info) {
  WorkerEntry& worker = at(info.rank);
  worker.info = info;
  worker.oom_kills = info.oom_kills;
  worker.visible = sees_process(self_, info) && !vanished(info.pid);
  worker.state = WorkerState::idle;
  const auto on_same_host = [&](const WorkerEntry& other) { return other.info.host == info.host; };
  const auto count =
      static_cast<int>(std::count_if(workers_.begin(), workers_.end(), on_same_host));
  for (auto& other : workers_) {
    if (on_same_host(other)) other.info.workers_on_host = count;
  }
  if (sees_process(self_, info)) return std::nullopt;
  if (!lifelines_) lifelines_.emplace(static_cast<int>(workers_.size()) + 1);
  return lifelines_->address();
}

bool Roster::heard_from(int rank) {
  WorkerEntry& worker = at(rank);
  worker.silence.broken();
  if (worker.state != WorkerState::lost || worker.experiment != 0) return false;
  rest(rank);
  return worker.state == WorkerState::idle;
}

void Roster::rest(int rank) {
  WorkerEntry& worker = at(rank);
  worker.state = worker.dismissed ? WorkerState::retired : WorkerState::idle;
  worker.experiment = 0;
}

void Roster::dismiss(int rank) {
  WorkerEntry& worker = at(rank);
  worker.dismissed = true;
  if (worker.state == WorkerState::idle) worker.state = WorkerState::retired;
}

std::vector<Loss> Roster::find_losses(Seconds now, Seconds timeout) {
  std::vector<Loss> losses;
  const bool look = now >= next_look_;
  if (look) next_look_ = now + kLookAround;
  if (look && lifelines_) lifelines_->look(now);
  for (auto& worker : workers_) {
    worker.silence.listened(now);
    if (worker.state == WorkerState::absent || worker.state == WorkerState::lost) continue;
    std::string reason = loss_of(worker, look, timeout);
    if (reason.empty()) continue;
    worker.state = WorkerState::lost;
    losses.push_back({worker.info.rank, std::move(reason)});
  }
  return losses;
}

std::string Roster::loss_of(const WorkerEntry& worker, bool look, Seconds timeout) {
  const int rank = worker.info.rank;
  const LineState line = lifelines_ ? lifelines_->state(rank) : LineState::none;
  const bool died = worker.visible ? look && vanished(worker.info.pid) : line == LineState::closed;
  if (died) return concat(name(rank), " died");
  const Seconds silence = worker.silence.length();
  if (line == LineState::broken && silence > std::min(timeout, kSilenceOfBroken)) {
    return concat(name(rank), " or its network is gone: no sign of life for ", fixed(silence, 1),
                  " s");
  }
  if (silence <= timeout) return "";
  return concat(name(rank), " gave no sign of life for ", fixed(silence, 1), " s");
}

OomKills Roster::oom_kills(int rank) {
  const WorkerEntry& worker = at(rank);
  if (worker.visible) return count_oom_kills_in(worker.info.oom_kills.group);
  OomKills kills = worker.oom_kills;
  for (const WorkerEntry& other : workers_) {
    if (other.info.host != worker.info.host) continue;
    kills.on_host = std::max(kills.on_host, other.oom_kills.on_host);
    if (other.oom_kills.group != kills.group) continue;
    kills.in_group = std::max(kills.in_group, other.oom_kills.in_group);
  }
  return kills;
}

std::string Roster::name(int rank) { return concat("rank ", rank, " on ", at(rank).info.host); }

int Roster::count(WorkerState state) const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(),
                    [&](const WorkerEntry& worker) { return worker.state == state; }));
}

}  // namespace dstune
