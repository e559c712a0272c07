#include "core/model/model_spec.hpp"

#include <stdexcept>

#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

// Members that few models have are left out: journals from before there was any lack it too.
const std::string kNothingOwn = ModelSpec{}.own;

}  // namespace

json::object to_json(const ModelSpec& spec) {
  json::object object{{"model_type", spec.family},
                      {"name", spec.name},
                      {"vocab_size", spec.vocab_size},
                      {"n_positions", spec.max_positions},
                      {"n_embd", spec.hidden_size},
                      {"n_layer", spec.num_layers},
                      {"n_head", spec.num_heads},
                      {"n_inner", spec.inner_size},
                      {"layer_norm_epsilon", spec.layer_norm_epsilon},
                      {"initializer_range", spec.initializer_range},
                      {"embd_pdrop", spec.embedding_dropout},
                      {"attn_pdrop", spec.attention_dropout},
                      {"resid_pdrop", spec.residual_dropout}};
  if (spec.task != Task::causal_lm) object["task"] = name_of(spec.task);
  if (spec.classifier_dropout != 0) object["classifier_dropout"] = spec.classifier_dropout;
  if (spec.expert_imbalance) object["expert_imbalance"] = *spec.expert_imbalance;
  if (spec.target_length != 0) object["target_length"] = spec.target_length;
  if (spec.own != kNothingOwn) object["own"] = parse_json(spec.own);
  write(spec.fine_tuning, object);
  return object;
}

ModelSpec model_spec_from_json(const json::object& object) {
  try {
    ModelSpec spec;
    const auto text = [&](const char* key) { return json::value_to<std::string>(object.at(key)); };
    const auto integer = [&](const char* key) { return object.at(key).to_number<std::int64_t>(); };
    const auto real = [&](const char* key) { return object.at(key).to_number<double>(); };
    spec.family = text("model_type");
    spec.name = text("name");
    spec.vocab_size = integer("vocab_size");
    spec.max_positions = integer("n_positions");
    spec.hidden_size = integer("n_embd");
    spec.num_layers = integer("n_layer");
    spec.num_heads = integer("n_head");
    spec.inner_size = integer("n_inner");
    spec.layer_norm_epsilon = real("layer_norm_epsilon");
    spec.initializer_range = real("initializer_range");
    spec.embedding_dropout = real("embd_pdrop");
    spec.attention_dropout = real("attn_pdrop");
    spec.residual_dropout = real("resid_pdrop");
    if (object.contains("task")) spec.task = task_from(text("task"));
    if (object.contains("classifier_dropout")) spec.classifier_dropout = real("classifier_dropout");
    if (object.contains("expert_imbalance")) spec.expert_imbalance = real("expert_imbalance");
    if (object.contains("target_length")) spec.target_length = integer("target_length");
    if (const auto* own = object.if_contains("own")) spec.own = json::serialize(own->as_object());
    spec.fine_tuning = fine_tuning_from(object);
    return spec;
  } catch (const std::exception& fault) {
    throw std::invalid_argument(concat("model_spec_from_json: ", fault.what()));
  }
}

}  // namespace dstune
