// The predictor's view of experiments that were measured.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// A predictor that has learnt those of `records` that are of groups of `ranks`, with the machine's
/// rates if these were measured. If there are more than `most`, it has learnt that many, spread
/// evenly among them.
/// @returns none if no such experiment was measured
std::optional<StepTimePredictor> taught_predictor(
    const std::vector<Record>& records, int ranks,
    std::size_t most = std::numeric_limits<std::size_t>::max());

/// The prediction_text() of a record that `predictor` has learnt; "" for any other record, or if
/// the predictor knows no other.
std::string hindsight(const StepTimePredictor& predictor, const Record& record);

}  // namespace dstune
