#include <stdexcept>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

std::string to_own(const T5Settings& settings) {
  return json::serialize(json::object{{"d_kv", settings.head_size},
                                      {"num_decoder_layers", settings.decoder_layers},
                                      {"relative_attention_num_buckets", settings.buckets},
                                      {"relative_attention_max_distance", settings.max_distance},
                                      {"dense_act_fn", settings.activation},
                                      {"is_gated_act", settings.gated},
                                      {"tie_word_embeddings", settings.tied},
                                      {"scale_decoder_outputs", settings.scales_output},
                                      {"decoder_start_token_id", settings.start_token}});
}

T5Settings settings_of(const ModelSpec& spec) {
  const json::value own = json::parse(spec.own);
  return {.head_size = own.at("d_kv").as_int64(),
          .decoder_layers = own.at("num_decoder_layers").as_int64(),
          .buckets = own.at("relative_attention_num_buckets").as_int64(),
          .max_distance = own.at("relative_attention_max_distance").as_int64(),
          .activation = json::value_to<std::string>(own.at("dense_act_fn")),
          .gated = own.at("is_gated_act").as_bool(),
          .tied = own.at("tie_word_embeddings").as_bool(),
          .scales_output = own.at("scale_decoder_outputs").as_bool(),
          .start_token = own.at("decoder_start_token_id").as_int64()};
}

T5Variant variant_of(const ModelSpec& spec) {
  if (spec.family == "t5") return T5Variant::t5;
  if (spec.family == "mt5") return T5Variant::mt5;
  throw std::invalid_argument(concat("no T5: ", spec.family));
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const T5Settings settings = settings_of(spec);
  const auto h = static_cast<double>(spec.hidden_size);
  const auto a = static_cast<double>(spec.num_heads * settings.head_size);
  const auto s = static_cast<double>(sequence_length);
  const auto t = static_cast<double>(spec.target_tokens(sequence_length));
  const double mlp = (settings.gated ? 3 : 2) * h * static_cast<double>(spec.inner_size);
  const auto encoder = static_cast<double>(spec.num_layers);
  const auto decoder = static_cast<double>(settings.decoder_layers);
  const double of_source = encoder * (4 * h * a + mlp) + decoder * 2 * h * a;
  const double of_target = decoder * (6 * h * a + mlp) + static_cast<double>(spec.vocab_size) * h;
  const double compared = encoder * s * s + decoder * (t * t + s * t);
  const double per_sequence = 6 * (of_source * s + of_target * t) + 12 * a * compared;
  return static_cast<double>(tokens) / s * per_sequence;
}

}  // namespace dstune::t5
