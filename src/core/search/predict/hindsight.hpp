// What the predictor says of experiments that were measured.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// Has learnt all of `records` that are of groups of `ranks`, with the machine's rates if they are
/// among them; of more than `most` that many, evenly among all.
/// @returns none  if nothing of that was measured
std::optional<StepTimePredictor> taught_predictor(
    const std::vector<Record>& records, int ranks,
    std::size_t most = std::numeric_limits<std::size_t>::max());

/// prediction_text() of a record that it has learnt; "" of any other, or if it knows no others.
std::string hindsight(const StepTimePredictor& predictor, const Record& record);

}  // namespace dstune
