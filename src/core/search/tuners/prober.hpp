// The points of a search: those whose measurement is known, and those that must be measured next.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/make_experiment.hpp"

namespace dstune {

/// A search is written as if every point that it visits were measured at once. It runs again and
/// again, each time from begin(): its decisions depend on measurements alone, so that it visits the
/// same points as before, and more. The first point that it visits and that is not yet known is
/// then wanted(), and the rest of that pass does nothing, because a search that is over visits
/// nothing.
///
/// Before a visit the search may say which points it will or might visit next; as many of these as
/// there are slots are wanted at once. A point that was fetched ahead and is never visited decides
/// nothing, so the answer does not depend on the number of slots.
class Prober {
 public:
  /// `config` must outlive the prober.
  explicit Prober(const TuningConfig& config) : config_(config) {}

  /// Begins a pass of the search, from its first point.
  /// @param slots  the number of experiments that can run at once now; 0: nothing will be run, and
  ///               the pass only finds the present result of the search
  void begin(int slots);

  /// The measurement of `point`; nullptr if it has none (it did not fit or failed), if it is not
  /// yet known, or if the search is over (a point is wanted, or tuner_num_trials points were
  /// visited).
  const Measured* visit(const Point& point);

  /// Wants the first of `points` that are not known, as many as there are slots. The order is that
  /// of the visits to come, the surest first. Does nothing with fewer than two slots, and in a call
  /// that an earlier pass has made already.
  void prefetch(const std::vector<Point>& points);

  /// Whether the search is over, so that it visits no new point.
  bool is_over() const;

  /// The points that must be measured before the search can go on; empty: it is finished.
  const std::vector<Point>& wanted() const { return wanted_; }

  void learn(const Point& point, Record record) {
    known_.insert_or_assign(point, std::move(record));
  }

  /// The best measured point since visit number `first`, of which the earlier visit wins ties;
  /// nullptr if none was measured.
  const Record* best_since(std::size_t first) const;
  std::size_t visits() const { return visited_.size(); }

 private:
  const TuningConfig& config_;
  std::map<Point, Record> known_;
  std::size_t fetched_ = 0;  ///< calls of prefetch() in the pass that came furthest

  // The members below belong to the present pass.
  int slots_ = 0;
  std::size_t fetches_ = 0;
  std::vector<Point> visited_;
  std::vector<Point> wanted_;
};

}  // namespace dstune
