#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "core/base/json.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/gpt2/gpt2.hpp"

namespace dstune::gpt2 {

// A member that is as in the published models is left out: so it was in journals from before there
// was any.
std::string to_own(const Gpt2Settings& settings) {
  const Gpt2Settings usual;
  json::object own;
  if (settings.activation != usual.activation) own["activation_function"] = settings.activation;
  if (!settings.scales_scores) own["scale_attn_weights"] = false;
  if (settings.scales_by_inverse_layer) own["scale_attn_by_inverse_layer_idx"] = true;
  if (!settings.tied) own["tie_word_embeddings"] = false;
  return json::serialize(own);
}

Gpt2Settings settings_of(const ModelSpec& spec) {
  const json::object own = json::parse(spec.own).as_object();
  Gpt2Settings settings;
  take_value(own, "activation_function", settings.activation);
  take_value(own, "scale_attn_weights", settings.scales_scores);
  take_value(own, "scale_attn_by_inverse_layer_idx", settings.scales_by_inverse_layer);
  take_value(own, "tie_word_embeddings", settings.tied);
  return settings;
}

}  // namespace dstune::gpt2
