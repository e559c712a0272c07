// What every configuration of a search would take, measured or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// What a search believes of one of its configurations when it has ended.
struct PredictedStep {
  Experiment experiment = {};
  Seconds step_time = 0;  ///< the median of what is believed
  Seconds low = 0;        ///< the ends of the interval of 95 %
  Seconds high = 0;
  double log_speed = 0;                            ///< of the metric, in the mean; larger is better
  std::optional<Seconds> measured = std::nullopt;  ///< by the search, before any repetition
};

/// predictions.csv: a header with units, then one row per configuration, the fastest first, with a
/// column for each setting in which they differ; lines end with CR LF.
std::string predictions_csv(std::vector<PredictedStep> steps);

/// How much of the speed each setting decides: what is lost with its worst value against its best
/// one, where all others are chosen as well as they can be for either, the largest loss first. Of a
/// setting that not all steps read only those count that do. "by what is believed in the
/// end, with the worst value, and the best of all others: zero 3 loses 62 %, micro batch 1 41 %;
/// less than 1 %: overlap_comm". "" where no setting differs.
std::string settings_that_matter(const std::vector<PredictedStep>& steps);

}  // namespace dstune
