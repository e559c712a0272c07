// T5 and mT5 as data: what their config.json may say, their tensors and modules, their FLOPs. They
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

namespace dstune::t5 {

/// ModelSpec::max_positions of these models, whose positions are relative and have no end.
inline constexpr std::int64_t kLongest = 1'000'000;

/// The two compute alike; mT5 never scales what its LM head reads.
enum class T5Variant { t5, mt5 };

/// The settings of config.json beside the members of ModelSpec, of which num_layers are the
/// encoder's and initializer_range is initializer_factor; ModelSpec::own is made of it.
struct T5Settings {
  std::int64_t head_size = 64;  ///< d_kv; heads * d_kv need not be d_model
  std::int64_t decoder_layers = 6;
  std::int64_t buckets = 32;        ///< relative_attention_num_buckets
  std::int64_t max_distance = 128;  ///< relative_attention_max_distance
  std::string activation = "relu";  ///< of feed_forward_proj
  bool gated = false;               ///< likewise
  bool tied = true;                 ///< the LM head's weight is the embedding's
  bool scales_output = true;        ///< by 1 / sqrt(d_model), before the LM head
  std::int64_t start_token = 0;     ///< decoder_start_token_id

  bool operator==(const T5Settings&) const = default;
};

std::string to_own(const T5Settings& settings);
/// Inverse of to_own, of spec.own.
T5Settings settings_of(const ModelSpec& spec);

/// @throws std::invalid_argument  if spec.family is neither
T5Variant variant_of(const ModelSpec& spec);

/// The models of Hugging Face's hub, by their names there.
std::vector<ModelSpec> presets(T5Variant variant);

/// Hugging Face's config.json, defaults for absent keys, dropout as in the file; name, family and
/// task are left to the caller. `pointer` stands in front of the place of each problem; nothing if
/// there was one. A key that no such model has is a warning.
std::optional<ModelSpec> read(T5Variant variant, const json::object& config,
                              std::string_view pointer, Problems& problems,
                              std::vector<std::string>& warnings);

/// T5ForConditionalGeneration. Tensor 0 is "shared.weight", which both embeddings have, and the
/// head where it is tied.
ModelParameters parameters(const ModelSpec& spec);

/// 6 FLOPs per weight of a product and token that goes through it, and 12 a per layer and pair of
/// tokens that attention compares, a = heads * d_kv.
/// @param tokens  of sources
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::t5
