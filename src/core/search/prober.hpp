// Measures points of the search, each once; several at once where ranks are free.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal.hpp"
#include "core/search/make_experiment.hpp"

namespace dstune {

/// The search is written as if one experiment ran at a time: it visits points and decides on what
/// it sees. Before that it may say which points it will or might visit next; these run at once as
/// far as slots are free. What was fetched ahead and is never visited decides nothing, so the
/// answer does not depend on the number of slots.
class Prober {
 public:
  /// Runs a batch; fewer records than experiments mean that the run was stopped.
  using Runner = std::function<std::vector<Record>(const std::vector<Experiment>&)>;
  /// Experiments that can run at once now.
  using Slots = std::function<int()>;

  /// config must outlive the prober.
  Prober(const TuningConfig& config, int group_size, Runner run, Slots slots);

  /// The point's measurement, made now if it is not there yet; nullptr if it has none (it did not
  /// fit or failed) or the search is over (stopped, tuner_num_trials points visited).
  const Measured* visit(const Point& point);

  /// Runs the first of `points` that have not run, as many as there are slots. The order is that of
  /// the visits to come, the surest first. Does nothing with fewer than two slots.
  void prefetch(const std::vector<Point>& points);

  /// Whether visit() of a new point would run it.
  bool is_over() const;
  bool is_stopped() const { return stopped_; }

  /// The best measured point visited since visit number `first`, with ties to the earlier visit;
  /// nullptr if none was measured.
  const Record* best_since(std::size_t first) const;
  std::size_t visits() const { return visited_.size(); }

  /// All that ran, fetched ahead or visited, in the order they finished.
  std::vector<Record> records() const;

 private:
  void run(const std::vector<Point>& points);

  const TuningConfig& config_;
  int group_size_;
  Runner run_;
  Slots slots_;
  std::map<Point, Record> ran_;
  std::vector<Point> visited_;
  bool stopped_ = false;
};

}  // namespace dstune
