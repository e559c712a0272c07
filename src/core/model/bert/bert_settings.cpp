#include <algorithm>
#include <stdexcept>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/model/bert/bert.hpp"

namespace dstune::bert {

std::string to_own(const Settings& settings) {
  json::object own{{"hidden_act", settings.activation},
                   {"type_vocab_size", settings.type_vocab_size},
                   {"num_labels", settings.num_labels}};
  if (settings.pad_token) own["pad_token_id"] = *settings.pad_token;
  return json::serialize(own);
}

Settings settings_of(const ModelSpec& spec) {
  const json::value own = json::parse(spec.own);
  const json::object& object = own.as_object();
  Settings settings{.activation = json::value_to<std::string>(object.at("hidden_act")),
                    .type_vocab_size = object.at("type_vocab_size").as_int64(),
                    .num_labels = object.at("num_labels").as_int64()};
  if (const auto* token = object.if_contains("pad_token_id")) {
    settings.pad_token = token->as_int64();
  }
  return settings;
}

Variant kin_of(const ModelSpec& spec) {
  if (spec.family == "bert") return Variant::bert;
  if (spec.family == "roberta") return Variant::roberta;
  if (spec.family == "distilbert") return Variant::distilbert;
  throw std::invalid_argument(concat("no kin of BERT: ", spec.family));
}

std::int64_t first_position(const ModelSpec& spec) {
  if (kin_of(spec) != Variant::roberta) return 0;
  return settings_of(spec).pad_token.value() + 1;
}

std::int64_t mask_token(const ModelSpec& spec) {
  constexpr std::int64_t kOfBert = 103;
  const std::int64_t last = spec.vocab_size - 1;
  return kin_of(spec) == Variant::roberta ? last : std::min(kOfBert, last);
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const auto h = static_cast<double>(spec.hidden_size);
  const auto f = static_cast<double>(spec.inner_size);
  const auto layers = static_cast<double>(spec.num_layers);
  const auto length = static_cast<double>(sequence_length);
  const double head =
      spec.task == Task::masked_lm
          ? h * h + static_cast<double>(spec.vocab_size) * h
          : (h * h + static_cast<double>(settings_of(spec).num_labels) * h) / length;
  const double matmul_weights = layers * (4 * h * h + 2 * h * f) + head;
  return static_cast<double>(tokens) * (6 * matmul_weights + 12 * layers * h * length);
}

}  // namespace dstune::bert
