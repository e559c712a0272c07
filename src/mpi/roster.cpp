#include "mpi/roster.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr Seconds kLookEvery = 0.02;

}  // namespace

Roster::Roster(int world_size, WorkerInfo self) : self_(std::move(self)) {
  for (int rank = 1; rank < world_size; ++rank) {
    workers_.emplace_back().info.rank = rank;
  }
}

void Roster::register_worker(const WorkerInfo& info) {
  WorkerEntry& worker = at(info.rank);
  worker.info = info;
  worker.visible = sees_process(self_, info) && !vanished(info.pid);
  worker.state = WorkerState::idle;
  const auto on_same_host = [&](const WorkerEntry& other) { return other.info.host == info.host; };
  const auto count =
      static_cast<int>(std::count_if(workers_.begin(), workers_.end(), on_same_host));
  for (auto& other : workers_) {
    if (on_same_host(other)) other.info.workers_on_host = count;
  }
}

bool Roster::heard_from(int rank) {
  WorkerEntry& worker = at(rank);
  worker.silence.broken();
  if (worker.state != WorkerState::lost || worker.experiment != 0) return false;
  worker.state = WorkerState::idle;
  return true;
}

std::vector<Loss> Roster::find_losses(Seconds now, Seconds timeout) {
  std::vector<Loss> losses;
  const bool look = now >= next_look_;
  if (look) next_look_ = now + kLookEvery;
  for (auto& worker : workers_) {
    worker.silence.listened(now);
    if (worker.state == WorkerState::absent || worker.state == WorkerState::lost) continue;
    const bool died = look && worker.visible && vanished(worker.info.pid);
    if (!died && worker.silence.length() <= timeout) continue;
    worker.state = WorkerState::lost;
    const int rank = worker.info.rank;
    losses.push_back({rank, died ? concat(name(rank), " died")
                                 : concat(name(rank), " gave no sign of life for ",
                                          fixed(worker.silence.length(), 1), " s")});
  }
  return losses;
}

std::string Roster::name(int rank) { return concat("rank ", rank, " on ", at(rank).info.host); }

int Roster::count(WorkerState state) const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(),
                    [&](const WorkerEntry& worker) { return worker.state == state; }));
}

}  // namespace dstune
