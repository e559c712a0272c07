#include "tests/support/scripted_pool.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dstune::testing_support {

ScriptedPool::ScriptedPool(std::vector<Worker> workers, Script script)
    : workers_(std::move(workers)), script_(std::move(script)) {
  std::sort(workers_.begin(), workers_.end(), [](const Worker& a, const Worker& b) {
    return a.host != b.host ? a.host < b.host : a.rank < b.rank;
  });
}

std::vector<std::string> ScriptedPool::names() const {
  std::vector<std::string> names;
  for (const auto& start : starts_) names.push_back(start.name);
  return names;
}

std::vector<Worker> ScriptedPool::idle() const {
  std::vector<Worker> idle;
  for (const auto& worker : workers_) {
    if (!busy_.contains(worker.rank)) idle.push_back(worker);
  }
  return idle;
}

void ScriptedPool::start(std::uint64_t id, const Experiment& experiment,
                         const std::vector<int>& ranks) {
  if (static_cast<int>(ranks.size()) != experiment.ranks) {
    throw std::logic_error(experiment.name + " got the wrong number of ranks");
  }
  const auto idle_workers = idle();
  for (const int rank : ranks) {
    const bool is_idle = std::any_of(idle_workers.begin(), idle_workers.end(),
                                     [&](const Worker& worker) { return worker.rank == rank; });
    if (!is_idle || !busy_.insert(rank).second) {
      throw std::logic_error(experiment.name + " got a rank that is not idle");
    }
  }
  running_.push_back({id, experiment, ranks});
  starts_.push_back({experiment.name, ranks, static_cast<int>(running_.size())});
}

bool ScriptedPool::loses_worker(const std::string& name) {
  const auto loss = losses_.find(name);
  return loss != losses_.end() && loss->second-- > 0;
}

std::vector<Completion> ScriptedPool::wait() {
  if (while_waiting_) while_waiting_();
  if (interrupted_) return {};
  if (running_.empty()) throw std::logic_error("wait() without a running experiment never returns");
  const auto over = std::move(running_.front());
  running_.pop_front();
  for (const int rank : over.ranks) busy_.erase(rank);
  if (away_ != 0) busy_.erase(std::exchange(away_, 0));
  return {end(over)};
}

void ScriptedPool::retire(int rank) {
  std::erase_if(workers_, [&](const Worker& worker) { return worker.rank == rank; });
}

Completion ScriptedPool::end(const Running& over) {
  const int first = over.ranks.front();
  if (stuck_in_ == over.experiment.name) {
    stuck_in_.clear();
    away_ = first;
    busy_.insert(first);
    return {over.id, Failed{FailureKind::timeout, "still running"}, {first}};
  }
  for (const int rank : over.ranks) {
    if (without_device_.erase(rank) > 0) {
      retire(rank);
      return {over.id,
              Failed{FailureKind::device_lost, "rank " + std::to_string(rank) + " on a: no GPU"},
              {rank}};
    }
    if (const auto sick = sick_.find(rank); sick != sick_.end() && sick->second-- > 0) {
      return {
          over.id, Failed{FailureKind::error, "rank " + std::to_string(rank) + " broke"}, {rank}};
    }
  }
  if (!loses_worker(over.experiment.name)) return {over.id, script_(over.experiment)};
  retire(first);
  return {over.id,
          Failed{FailureKind::worker_lost, "worker " + std::to_string(first) + " died"},
          {first}};
}

Experiment make_named(const std::string& name, int ranks) {
  Experiment experiment;
  experiment.name = name;
  experiment.ds_config.set("name", json::string_view(name));
  experiment.ranks = ranks;
  return experiment;
}

std::vector<Worker> workers_on(const std::string& host, int first, int count) {
  std::vector<Worker> workers;
  for (int i = 0; i < count; ++i) workers.push_back({first + i, host});
  return workers;
}

}  // namespace dstune::testing_support
