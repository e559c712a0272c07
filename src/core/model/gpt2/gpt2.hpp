// GPT-2 as data: what its config.json may say, its tensors and modules, its FLOPs. They are those
// of transformers 5.23.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::gpt2 {

/// The settings of config.json beside the members of ModelSpec; ModelSpec::own is made of it.
struct Gpt2Settings {
  std::string activation = "gelu_new";   ///< activation_function
  bool scales_scores = true;             ///< scale_attn_weights
  bool scales_by_inverse_layer = false;  ///< scale_attn_by_inverse_layer_idx
  bool tied = true;                      ///< tie_word_embeddings
};

std::string to_own(const Gpt2Settings& settings);
/// Inverse of to_own, of spec.own.
Gpt2Settings settings_of(const ModelSpec& spec);

/// "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2" of Hugging Face's hub.
std::vector<ModelSpec> presets();

/// Hugging Face's config.json of a GPT-2, defaults for absent keys, dropout as in the file; the
/// name is left to the caller. `pointer` stands in front of the place of each problem; nothing if
/// there was one. A key that no GPT-2 has is a warning.
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// 12 L + 4 tensors: wte, wpe, 12 per layer, ln_f weight and bias; the LM head uses tensor 0,
/// unless it has one of its own, the last. A classifier has its score instead. 12 L + 7 modules:
/// the root, transformer, wte, wpe, drop, per layer {block, ln_1, attn, c_attn, c_proj,
/// resid_dropout, ln_2, mlp, c_fc, c_proj, act, dropout}, ln_f, lm_head. They start as Hugging
/// Face's: normal with initializer_range, biases 0, LayerNorm weights 1, residual projections
/// scaled by 1 / sqrt(2 L).
ModelParameters parameters(const ModelSpec& spec);

/// tokens * (6 P_mm + 12 L h s), P_mm the matmul weights with the LM head once
/// (docs/deepspeed-step.md, "FLOPs"). Attention is counted without the causal saving, as
/// DeepSpeed's profiler does.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::gpt2
