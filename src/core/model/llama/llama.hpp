// Llama and its kin as data: what their config.json may say, their tensors and modules, FLOPs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/rotary_frequencies.hpp"

namespace dstune::llama {

/// The model_types of one code, in the order of their table.
enum class Kin {
  llama,
  mistral,
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3_text,
  phi3,
  mixtral,
  qwen2_moe,
  qwen3_moe
};
constexpr Kin kKin[] = {Kin::llama,   Kin::mistral,   Kin::qwen2,       Kin::qwen3,
                        Kin::gemma,   Kin::gemma2,    Kin::gemma3_text, Kin::phi3,
                        Kin::mixtral, Kin::qwen2_moe, Kin::qwen3_moe};

/// "llama", "mistral", ...
std::string_view model_type_of(Kin kin);

/// The settings that layers with experts have in place of an MLP's.
struct ExpertSettings {
  std::int64_t count = 0;        ///< E; 0: no layer has any
  std::int64_t chosen = 0;       ///< k, experts of a token
  std::int64_t inner_size = 0;   ///< f of each
  std::int64_t shared_size = 0;  ///< f of the one that takes every token; 0: there is none
  bool normalised = false;       ///< weights of the chosen are divided by their sum
  bool weights_in_fp32 = false;  ///< and so what they weigh, in every precision
  bool experts_first = false;    ///< registered before the router
  double balance = 0;            ///< weight of the loss that keeps them evenly used; 0: none
  std::vector<bool> in_layer;    ///< by layer
};

/// The settings that these models have beside a ModelSpec's members: ModelSpec::own, read.
struct LlamaSettings {
  Kin kin = Kin::llama;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  bool input_biases = false;  ///< of q, k and v
  bool output_bias = false;   ///< of o
  bool mlp_bias = false;
  bool head_norms = false;  ///< each head of q and k is normalised
  bool tied = false;        ///< LM head and embedding
  std::string activation;   ///< hidden_act, of the gate
  std::int64_t window =
      0;  ///< positions that a query of a windowed layer sees back, itself included
  std::vector<bool> windowed;  ///< by layer
  std::string rope;            ///< JSON object of read_rope_parameters()
  std::string windowed_rope;   ///< of windowed layers where they have their own, or empty
  bool is_gemma = false;       ///< scaled embedding, norms with 1 + weight
  bool post_norms = false;     ///< norms behind attention and MLP too
  double score_scale = 0;      ///< 0: 1 / sqrt(head_size)
  double score_cap = 0;        ///< attn_logit_softcapping; 0: none
  double logit_cap = 0;        ///< final_logit_softcapping; 0: none
  bool never_sdpa = false;     ///< transformers has eager attention where sdpa is asked for
  bool is_phi = false;         ///< q, k, v are one product, gate and up too; residuals drop out
  std::int64_t turned = 0;     ///< columns of a head that RoPE turns
  std::int64_t labels = 2;     ///< of sequence classification
  ExpertSettings experts;

  /// Keys that the layer sees back; 0: all.
  std::int64_t window_of(std::int64_t layer) const {
    return windowed[static_cast<std::size_t>(layer)] ? window : 0;
  }
};

LlamaSettings settings_of(const ModelSpec& spec);
/// The RoPE frequencies of the heads' columns, the first settings_of(spec).turned of them.
/// @param rope  of settings_of(spec)
RotaryFrequencies frequencies_of(const ModelSpec& spec, const std::string& rope,
                                 std::int64_t sequence_length);

/// Published models of that kin.
std::vector<ModelSpec> presets(Kin kin);

/// Hugging Face's config.json of a model of that kin, defaults for absent keys (transformers 5.23),
/// dropout as in the file; the name is left to the caller. `pointer` stands in front of the place
/// of each problem; nothing if there was one. A key that they do not have is a warning.
std::optional<ModelSpec> read(Kin kin, const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// embed_tokens, per layer {q, k, v, o (weight, bias), q_norm, k_norm; gate, up, down, or router
/// and experts; two or four norms}, or Phi-3's {o, qkv; gate_up, down; two norms}, then norm, and
/// lm_head where it is not tied, or the classifier's score. They start as Hugging Face's: normal
/// with initializer_range, biases 0, norms 1 (Gemma's, to which 1 is added: 0).
ModelParameters parameters(const ModelSpec& spec);

/// tokens * (6 P_mm + 12 sum over layers of a d min(s, window)), P_mm the matmul weights that a
/// token meets, with the LM head once (docs/deepspeed-step.md, "FLOPs"), which a classifier has for
/// every token too: of experts the chosen. Attention is counted without the causal saving.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

// These have the signatures of a Family.
template <Kin kin>
std::vector<ModelSpec> presets() {
  return presets(kin);
}
template <Kin kin>
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  return read(kin, config, pointer, problems, warnings);
}

}  // namespace dstune::llama
