// A way through a search space.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/make_experiment.hpp"

namespace dstune {

/// Which candidates next: a way through a search space. What it says depends on what it has learnt,
/// not on when it is asked.
class Tuner {
 public:
  Tuner() = default;
  virtual ~Tuner() = default;
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// What to measure now, the most important first; empty: the search is finished. All that it gave
  /// before has been learnt by then.
  /// @param free_groups  candidates that can be measured at once, >= 1
  virtual std::vector<Candidate> next(int free_groups) = 0;

  /// The outcome of a candidate, whatever it is.
  virtual void learn(const Record& record) = 0;

  /// The best as far as is known; none if nothing was measured.
  virtual std::optional<Record> best() = 0;

  /// The best of each stage, in their order, where the search goes stage after stage and these
  /// alone may be the best; else none.
  virtual std::vector<Record> stage_bests() { return {}; }

  /// What to know of the search that is over or was ended: lines without a full stop.
  virtual std::vector<std::string> remarks() { return {}; }
};

}  // namespace dstune
