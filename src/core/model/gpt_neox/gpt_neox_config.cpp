#include <array>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/gpt_neox/gpt_neox.hpp"
#include "core/model/labels.hpp"

namespace dstune::gpt_neox {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kRotaryRules[] = {
    choice("rope_type", "default").also("type").because("; scaled rotary angles are not modelled"),
    above("rope_theta", 0),
    between("partial_rotary_factor", 0, 1.0000001),
};
constexpr Section kRotary{.rules = kRotaryRules};

constexpr KeyRule kNeoxRules[] = {
    integer("vocab_size", 1, kMostTokens),
    integer("max_position_embeddings", 2, kMostTokens),
    integer("hidden_size", 1, kWidest),
    integer("num_hidden_layers", 1, kDeepest),
    integer("num_attention_heads", 1, kWidest),
    integer("intermediate_size", 1, 10 * kWidest),
    above("layer_norm_eps", 0),
    at_least("initializer_range", 0),
    choice("hidden_act", kActivationNames).because(kOtherActivations),
    between("rotary_pct", 0, 1.0000001),
    above("rotary_emb_base", 0),
    object("rope_parameters", kRotary).or_null(),
    object("rope_scaling", kRotary).or_null(),
    fraction_below_one("attention_dropout"),
    fraction_below_one("hidden_dropout"),
    boolean("use_parallel_residual"),
    boolean("attention_bias"),
    boolean("tie_word_embeddings"),
};
constexpr auto kAllRules = extended(std::to_array(kNeoxRules), kLabelRules);
constexpr Section kNeox{.rules = kAllRules, .other_keys = true};

// The no-op keys of published files: they do not change a training step.
constexpr std::string_view kNoOpKeys[] = {
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "hidden_dropout_prob",
};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.vocab_size = 50432;
  spec.max_positions = 2048;
  spec.hidden_size = 6144;
  spec.num_layers = 44;
  spec.num_heads = 64;
  spec.inner_size = 24576;
  return spec;
}

NeoxSettings settings_from(const json::object& object) {
  NeoxSettings settings;
  take_value(object, "hidden_act", settings.activation);
  take_value(object, "rotary_pct", settings.rotary_fraction);
  take_value(object, "rotary_emb_base", settings.rotary_base);
  take_value(object, "use_parallel_residual", settings.parallel_residual);
  take_value(object, "attention_bias", settings.attention_bias);
  take_value(object, "tie_word_embeddings", settings.tied);
  for (const char* key :
       {"rope_parameters", "rope_scaling"}) {  // the later wins, as in transformers
    const auto* rotary = object.if_contains(key);
    if (rotary == nullptr || !rotary->is_object()) continue;
    take_value(rotary->get_object(), "rope_theta", settings.rotary_base);
    take_value(rotary->get_object(), "partial_rotary_factor", settings.rotary_fraction);
  }
  return settings;
}

ModelSpec spec_from(const json::object& object) {
  ModelSpec spec = default_spec();
  take_value(object, "vocab_size", spec.vocab_size);
  take_value(object, "max_position_embeddings", spec.max_positions);
  take_value(object, "hidden_size", spec.hidden_size);
  take_value(object, "num_hidden_layers", spec.num_layers);
  take_value(object, "num_attention_heads", spec.num_heads);
  take_value(object, "intermediate_size", spec.inner_size);
  take_value(object, "layer_norm_eps", spec.layer_norm_epsilon);
  take_value(object, "initializer_range", spec.initializer_range);
  take_value(object, "attention_dropout", spec.attention_dropout);
  take_value(object, "hidden_dropout", spec.residual_dropout);
  spec.embedding_dropout = spec.residual_dropout;
  spec.own = with_labels(to_own(settings_from(object)), object);
  return spec;
}

// The rules that no key alone can say.
void check_dimensions(const ModelSpec& spec, std::string_view pointer, Problems& problems) {
  if (spec.hidden_size % spec.num_heads != 0) {
    problems.add(
        child(pointer, "num_attention_heads"),
        concat("is ", spec.num_heads, ", which does not divide hidden_size ", spec.hidden_size));
    return;
  }
  const NeoxSettings settings = settings_of(spec);
  const std::int64_t columns = rotary_columns(spec, settings);
  if (columns == 0 || columns > spec.head_size()) {
    problems.add(
        child(pointer, "rotary_pct"),
        concat("is ", settings.rotary_fraction, ", ", columns, " of the ", spec.head_size(),
               " columns of a head; accepted: what rotates at least one pair of them"));
  }
}

}  // namespace

std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  warn_of_unknown_keys(config, kNeox, kNoOpKeys, "GPT-NeoX", pointer, warnings);
  const auto faults = problems.count();
  const ModelSpec spec = spec_from(check_section(config, kNeox, pointer, problems));
  if (problems.count() == faults) check_dimensions(spec, pointer, problems);
  if (problems.count() > faults) return std::nullopt;
  return spec;
}

}  // namespace dstune::gpt_neox
