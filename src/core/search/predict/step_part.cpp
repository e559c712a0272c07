#include "core/search/predict/step_part.hpp"

#include <algorithm>
#include <numeric>

namespace dstune {
namespace {

constexpr std::array<std::string_view, kStepParts> kNames{"matrix products",
                                                          "memory of matrix products",
                                                          "attention",
                                                          "passes of the model",
                                                          "passes of ZeRO",
                                                          "optimizer",
                                                          "launches",
                                                          "latency of messages",
                                                          "all-reduce",
                                                          "reduce",
                                                          "reduce-scatter",
                                                          "all-gather",
                                                          "broadcast",
                                                          "all-to-all",
                                                          "host",
                                                          "drive",
                                                          "constant"};

constexpr std::array<std::string_view, 5> kUpdates{"adam", "sgd", "lion", "adagrad", "lamb"};

constexpr std::array<std::string_view, 15> kStepPasses{
    "copy",        "cast",       "scale",           "scale_by",      "add",
    "add_squares", "fill_zero",  "find_inf_or_nan", "fill_constant", "clip_factor",
    "quantize",    "dequantize", "sum_quantized",   "read",          "write"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view name_of(StepPart part) { return kNames.at(index_of(part)); }

StepPart part_of(std::string_view operation) {
  if (operation.starts_with("attention")) return StepPart::attention;
  if (is_in(kUpdates, operation)) return StepPart::update;
  if (is_in(kStepPasses, operation)) return StepPart::step_passes;
  return StepPart::model_passes;
}

Seconds StepTime::total() const { return std::accumulate(parts.begin(), parts.end(), Seconds{0}); }

}  // namespace dstune
