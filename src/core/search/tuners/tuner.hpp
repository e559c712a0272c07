// The interface of tuners, which choose a way through a search space.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/files/predicted_steps.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/make_experiment.hpp"

namespace dstune {

/// Says which candidates to measure next. Its answers depend on what it has learnt, not on when it
/// is asked.
class Tuner {
 public:
  Tuner() = default;
  virtual ~Tuner() = default;
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// The candidates to measure now, the most important first; empty: the search is finished. The
  /// tuner has learnt the outcome of all earlier ones by then.
  /// @param free_groups  the number of candidates that can be measured at once, >= 1
  virtual std::vector<Candidate> next(int free_groups) = 0;

  /// Learns the outcome of a candidate, whatever it is.
  virtual void learn(const Record& record) = 0;

  /// About how many candidates it asks for from now on, those of the last next() included and as
  /// far as it can tell; none: it cannot tell. Asked after next(), before anything more is learnt.
  virtual std::optional<int> still_to_come() { return std::nullopt; }

  /// The step time that is believed of a candidate for which next() asked; none: nothing is.
  virtual std::optional<Seconds> foretold(const std::string&) { return std::nullopt; }

  /// The best record so far; none if nothing was measured.
  virtual std::optional<Record> best() = 0;

  /// The best record of each stage, in the order of the stages, if the search goes stage after
  /// stage and only these may be the best; else none.
  virtual std::vector<Record> stage_bests() { return {}; }

  /// The names of the measured candidates that may truly be the best, the likeliest first; none if
  /// the tuner does not know more than the measurements say.
  virtual std::vector<std::string> contenders() { return {}; }

  /// What is believed of all candidates; none if the tuner believes nothing.
  virtual std::vector<PredictedStep> predictions() { return {}; }

  /// Remarks on the search once it is over: lines without a full stop.
  virtual std::vector<std::string> remarks() { return {}; }
};

}  // namespace dstune
