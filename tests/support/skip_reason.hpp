// Why a step of stage 3 is skipped.
#pragma once

#include <string>
#include <variant>

#include "core/base/json_parser.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

/// What a dry run of the tiny model in bf16 on two ranks, whose host's memory has no limit, is
/// skipped for; "runs" if it is not.
/// @param zero, root  JSON of zero_optimization, and of what stands beside it
inline std::string skip_reason_of_stage_3(const char* zero, const char* root = "{}") {
  TinyExperiment tiny{3, 2, 1, 1, DType::bf16, false};
  tiny.zero = parse_json(zero).as_object();
  tiny.root = parse_json(root).as_object();
  Experiment experiment = tiny.make();
  experiment.settings.host_memory_limit = kNoLimit;
  const auto outcome = dry_run(experiment, 0).outcome;
  const auto* const skipped = std::get_if<Skipped>(&outcome);
  return skipped == nullptr ? std::string("runs") : skipped->reason;
}

}  // namespace dstune::test
