// The part of a model that is trained: all, what patterns name, or adapters beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// PEFT's LoraConfig, with its names in comments. It is complete: it has what PEFT adds by itself
/// for a family or a task.
struct LoraSettings {
  enum class Bias { none, all, lora_only };

  std::int64_t rank = 8;              ///< r
  double alpha = 8;                   ///< lora_alpha
  double dropout = 0;                 ///< lora_dropout
  bool rank_stabilized = false;       ///< use_rslora
  Bias bias = Bias::none;             ///< which biases of the model are trained too
  std::vector<std::string> targets;   ///< target_modules: names of modules, or their ends
  std::string target_pattern;         ///< instead: of whole names, or kAllLinear
  std::vector<std::string> excluded;  ///< exclude_modules, likewise
  std::string excluded_pattern;       ///< instead, likewise
  std::vector<std::int64_t> layers;   ///< layers_to_transform; empty: all
  std::vector<std::string> saved;     ///< modules_to_save: trained as a whole, in a copy

  static constexpr const char* kAllLinear = "all-linear";

  double scaling() const;  ///< alpha / r, or alpha / sqrt(r)
  bool operator==(const LoraSettings&) const = default;
};

/// A model has at most one of the two.
struct FineTuning {
  std::vector<std::string> trainable;  ///< globs of whole parameter names; empty: all of them
  std::optional<LoraSettings> lora;

  bool is_everything() const { return trainable.empty() && !lora; }
  bool operator==(const FineTuning&) const = default;
};

/// Adds "trainable" and "lora", where there are any, to the text form of a model.
void write(const FineTuning& tuning, json::object& model);
/// Inverse of write(); trusts its input.
FineTuning fine_tuning_from(const json::object& model);

}  // namespace dstune
