// The keys of a DeepSpeed configuration (docs/deepspeed-step.md, "Keys").
#pragma once

#include "core/input/key_rules.hpp"

namespace dstune {

/// Batch sizes beyond this are typing mistakes, and their products would overflow.
constexpr std::int64_t kLargestBatch = 1'000'000'000;
/// Of numbers of ranks and steps.
constexpr std::int64_t kMostInt = 2'147'483'647;

/// Elements of buffers that are allocated as given: 10^15 of them are petabytes.
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

/// The whole file. Keys without a rule pass through untouched. zero_optimization.stage and the
/// three batch sizes are read elsewhere (core/config/batch_sizes.hpp,
/// core/config/tuning_config.hpp).
const Section& deepspeed_section();

}  // namespace dstune
