// A WorkerPool without workers: outcomes come from a script, time does not pass.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/search/schedule/worker_pool.hpp"

namespace dstune::testing_support {

/// Ends one experiment per wait(), the one that was started first, with the outcome that the script
/// gives it.
class ScriptedPool : public WorkerPool {
 public:
  using Script = std::function<Outcome(const Experiment&)>;

  /// What was started, in order.
  struct Start {
    std::string name;
    std::vector<int> ranks;
    int running = 0;  ///< experiments that run then, this one included
  };

  ScriptedPool(std::vector<Worker> workers, Script script);

  /// The next `times` experiments called `name` lose their first worker, for good.
  void lose_worker_in(const std::string& name, int times = 1) { losses_[name] = times; }
  /// What runs on `rank` fails there, the next `times` times.
  void fail_on(int rank, int times = 1'000'000) { sick_[rank] = times; }
  /// What runs on `rank` next loses its device there.
  void lose_device_of(int rank) { without_device_.insert(rank); }
  /// The next experiment called `name` gets stuck on its first worker, which is away until the
  /// experiment after that ended.
  void get_stuck_in(const std::string& name) { stuck_in_ = name; }
  /// From now on wait() returns without an outcome, as it does after a signal.
  void interrupt() { interrupted_ = true; }

  const std::vector<Start>& starts() const { return starts_; }
  /// Names of what was started, in order.
  std::vector<std::string> names() const;

  std::vector<Worker> idle() const override;
  int size() const override { return static_cast<int>(workers_.size()) - (away_ != 0 ? 1 : 0); }
  void start(std::uint64_t id, const Experiment& experiment,
             const std::vector<int>& ranks) override;
  void retire(int rank) override;
  std::vector<Completion> wait() override;
  void stay_in_touch() override { ++touches_; }
  /// How often stay_in_touch() was called.
  int touches() const { return touches_; }
  /// Once in every wait().
  void call_while_waiting(std::function<void()> work) override { while_waiting_ = std::move(work); }

 private:
  int touches_ = 0;
  struct Running {
    std::uint64_t id = 0;
    Experiment experiment;
    std::vector<int> ranks;
  };

  bool loses_worker(const std::string& name);
  Completion end(const Running& over);

  std::vector<Worker> workers_;
  Script script_;
  std::map<std::string, int> losses_;
  std::map<int, int> sick_;
  std::set<int> without_device_;
  std::string stuck_in_;
  std::function<void()> while_waiting_;
  int away_ = 0;  ///< the rank that is stuck; 0: none
  std::set<int> busy_;
  std::deque<Running> running_;
  std::vector<Start> starts_;
  bool interrupted_ = false;
};

/// An experiment of `ranks` that differs from others by its name alone.
Experiment make_named(const std::string& name, int ranks);

/// `count` workers of one host, ranks from `first`.
std::vector<Worker> workers_on(const std::string& host, int first, int count);

}  // namespace dstune::testing_support
