// OPT as data: what its config.json may say, its tensors and modules, its FLOPs. They are those of
// transformers 5.23.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::opt {

/// The settings of config.json beside the members of ModelSpec; ModelSpec::own is made of it.
struct OptSettings {
  std::string activation = "relu";    ///< activation_function
  std::int64_t embedding_size = 768;  ///< word_embed_proj_dim; hidden_size where that is null
  bool norm_before = true;            ///< do_layer_norm_before
  bool removes_final_norm = false;    ///< _remove_final_layer_norm
  bool has_bias = true;               ///< enable_bias
  bool norm_parameters = true;        ///< layer_norm_elementwise_affine
  bool tied = true;                   ///< tie_word_embeddings

  /// The norm stands before the LM head where layers end in a sum and not in a norm.
  bool has_final_norm() const { return norm_before && !removes_final_norm; }
};

std::string to_own(const OptSettings& settings);
/// Inverse of to_own, of spec.own.
OptSettings settings_of(const ModelSpec& spec);

/// The rows of the position table before that of the first position.
inline constexpr std::int64_t kFirstPosition = 2;

/// "opt-125m" to "opt-66b" of Hugging Face's hub.
std::vector<ModelSpec> presets();

/// Hugging Face's config.json, defaults for absent keys, dropout as in the file; the name is left
/// to the caller. `pointer` stands in front of the place of each problem; nothing if there was one.
/// A key that no OPT has is a warning.
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// embed_tokens, embed_positions, project_out and project_in if the embedding has another size,
/// final_layer_norm, per layer {k, v, q, out, LayerNorm, fc1, fc2, LayerNorm}, lm_head unless it is
/// tied. Linear and embedding weights are normal with init_std, biases 0, LayerNorm weights 1.
ModelParameters parameters(const ModelSpec& spec);

/// tokens * (6 P_mm + 12 L h s), P_mm the matmul weights with the LM head once
/// (docs/deepspeed-step.md, "FLOPs").
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::opt
