#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <boost/json/serialize.hpp>

#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/labels.hpp"
#include "core/model/llama/llama.hpp"
#include "core/model/llama/llama_kin.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

Kin kin_of(std::string_view model_type) {
  for (const Kin kin : kKin) {
    if (model_type_of(kin) == model_type) return kin;
  }
  throw std::invalid_argument(concat("no kin of Llama: ", model_type));
}

std::vector<bool> windowed_layers(const json::object& own, std::int64_t layers) {
  const auto* types = own.if_contains("layer_types");
  const bool all = types == nullptr && own.contains("sliding_window");
  std::vector<bool> windowed(static_cast<std::size_t>(layers), all);
  if (types == nullptr) return windowed;
  const auto& list = types->as_array();
  std::transform(list.begin(), list.end(), windowed.begin(),
                 [](const json::value& type) { return type == "sliding_attention"; });
  return windowed;
}

}  // namespace

LlamaSettings settings_of(const ModelSpec& spec) {
  const json::object own = parse_json(spec.own).as_object();
  LlamaSettings settings;
  settings.kin = kin_of(spec.family);
  const Description& kin = description_of(settings.kin);
  const bool biases = own.at("attention_bias").as_bool();
  settings.kv_heads = own.at("num_key_value_heads").to_number<std::int64_t>();
  settings.head_size = own.at("head_dim").to_number<std::int64_t>();
  settings.input_biases = biases || kin.always_input_biases;
  if (const auto* bias = own.if_contains("qkv_bias")) settings.input_biases = bias->as_bool();
  settings.output_bias = biases;
  settings.mlp_bias = own.at("mlp_bias").as_bool();
  settings.head_norms = kin.head_norms;
  settings.activation = json::value_to<std::string>(own.at("hidden_act"));
  settings.tied = own.at("tie_word_embeddings").as_bool();
  if (const auto* window = own.if_contains("sliding_window")) {
    settings.window = window->to_number<std::int64_t>();
  }
  settings.windowed = windowed_layers(own, spec.num_layers);
  settings.rope = json::serialize(own.at("rope_parameters"));
  if (const auto* rope = own.if_contains("windowed_rope_parameters")) {
    settings.windowed_rope = json::serialize(*rope);
  }
  settings.is_gemma = kin.is_gemma;
  settings.post_norms = kin.post_norms;
  settings.never_sdpa = settings.kin == Kin::gemma2;
  settings.is_phi = kin.is_phi;
  if (const auto* scalar = own.if_contains("query_pre_attn_scalar")) {
    settings.score_scale = 1 / std::sqrt(scalar->to_number<double>());
  }
  take_value(own, "attn_logit_softcapping", settings.score_cap);
  take_value(own, "final_logit_softcapping", settings.logit_cap);
  double part = 1;
  take_value(own, "partial_rotary_factor", part);
  settings.turned = static_cast<std::int64_t>(static_cast<double>(settings.head_size) * part);
  settings.labels = label_count(spec);
  settings.experts = experts_of(own, kin, spec.num_layers);
  return settings;
}

RotaryFrequencies frequencies_of(const ModelSpec& spec, const std::string& rope,
                                 std::int64_t sequence_length) {
  return rotary_frequencies(parse_json(rope).as_object(), spec.max_positions,
                            settings_of(spec).turned, sequence_length);
}

}  // namespace dstune::llama
