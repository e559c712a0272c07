// Mixture of experts as data: what a layer of Mixtral, Qwen2-MoE or Qwen3-MoE has in place of an
// MLP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"
#include "core/model/llama/llama_values.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune::llama {

/// Reads the experts into `own`: how many, how many a token goes to, which layers have them.
void read_experts(const Values& values, const ModelSpec& spec, const Description& kin,
                  std::string_view pointer, Problems& problems, json::object& own);

/// The settings that read_experts() has written; none if it has not.
ExpertSettings experts_of(const json::object& own, const Description& kin, std::int64_t layers);

/// Adds {router, experts {gate_up_proj, down_proj}; shared expert and its gate} as the module
/// `name`.
void add_experts(ModelBuilder& builder, const ModelSpec& spec, const LlamaSettings& settings,
                 const std::string& name, std::size_t parent);

/// Matmul weights that a token meets in a layer's MLP or experts.
double active_mlp_weights(const ModelSpec& spec, const LlamaSettings& settings, std::int64_t layer);

/// Published models with experts: name and config.json.
std::vector<std::pair<std::string, json::object>> expert_presets(Kin kin);

}  // namespace dstune::llama
