#include "core/search/space/validity.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_checks.hpp"
#include "core/train/zero/layout/leaf_modules.hpp"
#include "core/train/zero/layout/shard_groups.hpp"

namespace dstune {
namespace {

/// A text of StepConfig::unsupported for a combination that DeepSpeed itself refuses, and the
/// sentence for people.
struct Refusal {
  std::string_view key;
  std::string_view sentence;
};

constexpr Refusal kRefusals[] = {
    {"prescale_gradients",
     "DeepSpeed refuses prescale_gradients in stages 2 and 3 with "
     "reduce_scatter"},
    {"gradient_predivide_factor",
     "gradient_predivide_factor other than 1 needs stage 0 or 1, or stage 2 without "
     "reduce_scatter"},
    {"gradient_allreduce_op", "gradient_allreduce_op \"sum\" needs a stage other than 3"},
    {"data_types.grad_accum_dtype",
     "data_types.grad_accum_dtype other than the model's type needs stage 1, 2 or 3, and in stage "
     "1 "
     "contiguous_gradients, or fp32 with DeepSpeed 0.19.8"},
};

std::string sentence_of(const std::string& key) {
  const auto refusal = std::find_if(std::begin(kRefusals), std::end(kRefusals),
                                    [&](const Refusal& known) { return known.key == key; });
  return refusal == std::end(kRefusals) ? concat(key, " is not modelled")
                                        : std::string(refusal->sentence);
}

std::optional<std::string> relation_fault(const json::object& ds_config) {
  Problems problems("");
  check_relations(ds_config, problems);
  if (problems.empty()) return std::nullopt;
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    const Problem& first = error.problems().front();
    return concat(first.where, ' ', first.what);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Validity::step_fault(const StepConfig& step) const {
  const auto& exact = config_.objective.train_batch_size;
  if (exact && step.train_batch(ranks_) != *exact) {
    return concat("train_batch_size would not be ", *exact);
  }
  const auto& most = config_.autotuning.max_train_batch_size;
  if (most && step.train_batch(ranks_) > *most) {
    return concat("train_batch_size would be above max_train_batch_size, ", *most);
  }
  if (!step.unsupported.empty()) return sentence_of(step.unsupported.front());
  if (names_leaf_modules(step)) {
    const auto leaves = unsupported_leaf_modules(step, parameters_);
    if (!leaves.empty()) return sentence_of(leaves.front());
  }
  const auto shards = unsupported_shard_sizes(step, ranks_);
  if (!shards.empty()) return sentence_of(shards.front());
  return std::nullopt;
}

std::optional<std::string> Validity::fault(const DeepSpeedConfig& config) const {
  if (auto relation = relation_fault(config.json())) return relation;
  if (!config.fault().empty()) return config.fault();
  return step_fault(config.step());
}

}  // namespace dstune
