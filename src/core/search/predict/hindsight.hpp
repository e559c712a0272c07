// The predictor's view of experiments that were measured.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// So many measurements teach a predictor what there is to learn; each costs a dry step.
inline constexpr std::size_t kEnoughToTeach = 128;

/// A predictor that has learnt those of `records` that are of groups of `ranks`, with the machine's
/// rates if these were measured. If there are more than `most`, it has learnt that many, spread
/// evenly among them, and `one` of them in any case if it is given.
/// @returns none if no such experiment was measured
std::optional<StepTimePredictor> taught_predictor(const std::vector<Record>& records, int ranks,
                                                  std::size_t most = kEnoughToTeach,
                                                  const Record* one = nullptr);

/// The prediction_text() of a record that `predictor` has learnt and, if its steps used a drive,
/// how far off the guess of its speed is by all that was learnt; "" for any other record, or if the
/// predictor knows no other.
std::string hindsight(const StepTimePredictor& predictor, const Record& record);

}  // namespace dstune
