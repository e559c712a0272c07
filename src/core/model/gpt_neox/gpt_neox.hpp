// GPT-NeoX (Pythia) as data: what its config.json may say, its tensors and modules, its FLOPs. They
// are those of transformers 5.23.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/rotary_frequencies.hpp"

namespace dstune::gpt_neox {

/// The settings of config.json beside the members of ModelSpec; ModelSpec::own is made of it.
struct NeoxSettings {
  std::string activation = "gelu";  ///< hidden_act
  double rotary_fraction = 0.25;    ///< rotary_pct: of each head's columns
  double rotary_base = 10000;       ///< rotary_emb_base
  bool parallel_residual = true;    ///< use_parallel_residual
  bool attention_bias = true;       ///< of query_key_value and dense
  bool tied = false;                ///< tie_word_embeddings
};

std::string to_own(const NeoxSettings& settings);
/// Inverse of to_own, of spec.own.
NeoxSettings settings_of(const ModelSpec& spec);

/// Columns of each head that RoPE turns: rotary_fraction of them, rounded down, or one more if that
/// is odd.
std::int64_t rotary_columns(const ModelSpec& spec, const NeoxSettings& settings);
/// The RoPE frequencies of their pairs.
RotaryFrequencies frequencies(const ModelSpec& spec, const NeoxSettings& settings);

/// "pythia-70m" to "pythia-12b", "gpt-neox-20b" and others of Hugging Face's hub.
std::vector<ModelSpec> presets();

/// Hugging Face's config.json, defaults for absent keys, dropout as in the file; the name is left
/// to the caller. `pointer` stands in front of the place of each problem; nothing if there was one.
/// A key that no GPT-NeoX has is a warning.
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// embed_in, per layer {both LayerNorms, query_key_value, dense, dense_h_to_4h, dense_4h_to_h},
/// final_layer_norm, lm_head unless it is tied. Linear and embedding weights are normal with
/// initializer_range, biases 0, LayerNorm weights 1.
ModelParameters parameters(const ModelSpec& spec);

/// tokens * (6 P_mm + 12 L h s), P_mm the matmul weights with the LM head once
/// (docs/deepspeed-step.md, "FLOPs").
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::gpt_neox
