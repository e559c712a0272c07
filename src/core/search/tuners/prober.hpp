// What a search knows about its points, and the next ones that it must know.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/make_experiment.hpp"

namespace dstune {

/// The search is written as if every point it visits were measured on the spot. It runs again and
/// again, each time from begin(): its decisions depend on measurements alone, so that it comes to
/// the same points as before, and further. The first point it visits that is not yet known is then
/// wanted(), and the rest of that pass is idle: a search that is over visits nothing.
///
/// Before a visit the search may say which points it will or might visit next; as many of these as
/// there are slots are wanted at once. What was fetched ahead and is never visited decides nothing,
/// so the answer does not depend on the number of slots.
class Prober {
 public:
  /// config must outlive the prober.
  explicit Prober(const TuningConfig& config) : config_(config) {}

  /// The search begins, from its first point.
  /// @param slots  experiments that can run at once now; 0: nothing will be run, this pass only
  ///               looks at what the search came to
  void begin(int slots);

  /// The point's measurement; nullptr if it has none (it did not fit or failed), is not yet known,
  /// or the search is over (something is wanted, tuner_num_trials points visited).
  const Measured* visit(const Point& point);

  /// Wants the first of `points` that are not known, as many as there are slots. The order is that
  /// of the visits to come, the surest first. Does nothing with fewer than two slots, and where an
  /// earlier pass has been.
  void prefetch(const std::vector<Point>& points);

  /// Whether visit() of a new point would count.
  bool is_over() const;

  /// What must be measured before the search can go on; empty: it is finished.
  const std::vector<Point>& wanted() const { return wanted_; }

  void learn(const Point& point, Record record) {
    known_.insert_or_assign(point, std::move(record));
  }

  /// The best measured point visited since visit number `first`, with ties to the earlier visit;
  /// nullptr if none was measured.
  const Record* best_since(std::size_t first) const;
  std::size_t visits() const { return visited_.size(); }

 private:
  const TuningConfig& config_;
  std::map<Point, Record> known_;
  std::size_t fetched_ = 0;  ///< calls of prefetch() in all passes until now

  // Of this pass:
  int slots_ = 0;
  std::size_t fetches_ = 0;
  std::vector<Point> visited_;
  std::vector<Point> wanted_;
};

}  // namespace dstune
