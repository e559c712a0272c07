// What the predictor says of experiments that were measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// Has learnt all of `records` that are of groups of `ranks`, with the machine's rates if they are
/// among them.
/// @returns none  if nothing of that was measured
std::optional<StepTimePredictor> taught_predictor(const std::vector<Record>& records, int ranks);

/// prediction_text() of a record that it has learnt; "" of any other, or if it knows no others.
std::string hindsight(const StepTimePredictor& predictor, const Record& record);

}  // namespace dstune
