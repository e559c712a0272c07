// The architecture that is trained: read from a Hugging Face config.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// GPT-2, with the names of Hugging Face's config in comments. Validated by read_model_spec
/// (core/config): every dimension >= 1, heads divide hidden_size.
struct ModelSpec {
  std::string name = "gpt2";          ///< preset name, file stem or "inline"; shown only
  std::int64_t vocab_size = 50257;    ///< V
  std::int64_t max_positions = 1024;  ///< n_positions
  std::int64_t hidden_size = 768;     ///< h, n_embd
  std::int64_t num_layers = 12;       ///< L, n_layer
  std::int64_t num_heads = 12;        ///< a, n_head
  std::int64_t inner_size = 3072;     ///< f, n_inner, 4h where that is null
  double layer_norm_epsilon = 1e-5;   ///< layer_norm_epsilon
  double initializer_range = 0.02;    ///< initializer_range
  double embedding_dropout = 0;       ///< embd_pdrop; 0 unless dstune.dropout is true
  double attention_dropout = 0;       ///< attn_pdrop; likewise
  double residual_dropout = 0;        ///< resid_pdrop; likewise

  std::int64_t head_size() const { return hidden_size / num_heads; }
  bool operator==(const ModelSpec&) const = default;
};

/// The text form of wire, journal and resume: an object of Hugging Face's keys.
json::object to_json(const ModelSpec& spec);
/// Inverse of to_json; trusts its input (made by to_json). @throws std::invalid_argument if it is
/// not
ModelSpec model_spec_from_json(const json::object& object);

/// One parameter tensor.
struct ParameterSpec {
  std::string name;  ///< as in named_parameters(): "transformer.h.0.attn.c_attn.weight"
  std::vector<std::int64_t> shape;  ///< Conv1D weights are stored [in, out]
  bool weight_decay = true;         ///< false for biases and LayerNorm: HF's second parameter group

  std::int64_t numel() const;
};

/// One nn.Module whose forward runs. Modules without a forward of their own (ModuleList) and those
/// that "sdpa" attention does not call (attn_dropout) are left out.
struct ModuleSpec {
  std::string name;                     ///< as in named_modules(): "transformer.h.0.attn"; root: ""
  std::string class_name;               ///< "GPT2Attention"
  std::size_t parent = 0;               ///< index; the root's is its own
  std::vector<std::size_t> parameters;  ///< its own, without its children's: indices of tensors
  /// False where only token and position numbers come in: autograd then never reaches the end of
  /// the module's backward.
  bool input_has_gradient = true;
};

/// All parameters of a model in registration order (zero-step.md 5.1). Tied tensors stand once:
/// the head uses tensor 0 (transformer.wte.weight).
struct ModelParameters {
  std::vector<ParameterSpec>
      tensors;  ///< 12 L + 4 of them: wte, wpe, 12 per layer, ln_f weight and bias
  /// 12 L + 7 in registration order, parents before their children: the root, transformer, wte,
  /// wpe, drop, per layer {block, ln_1, attn, c_attn, c_proj, resid_dropout, ln_2, mlp, c_fc,
  /// c_proj, act, dropout}, ln_f, lm_head (tensor 0 again). See module_places.hpp.
  std::vector<ModuleSpec> modules;

  std::int64_t total() const;  ///< P
  std::int64_t num_layers() const { return (static_cast<std::int64_t>(tensors.size()) - 4) / 12; }
  /// The module after `module` and all that is inside it.
  std::size_t end_of(std::size_t module) const;
  /// Tensors of `module` and of all that is inside it, ascending, each once.
  std::vector<std::size_t> tensors_within(std::size_t module) const;
};

ModelParameters make_model_parameters(const ModelSpec& spec);

/// Training FLOPs (forward + backward, no recomputation) of `tokens` tokens in sequences of
/// `sequence_length`: tokens * (6 P_mm + 12 L h s), P_mm the matmul weights with the head once
/// (zero-step.md 5.2). Attention is counted without the causal saving, as Megatron and DeepSpeed
/// do.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune
