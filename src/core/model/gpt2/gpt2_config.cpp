#include <array>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/gpt2/gpt2.hpp"
#include "core/model/labels.hpp"

namespace dstune::gpt2 {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kGpt2Rules[] = {
    integer("vocab_size", 1, kMostTokens),
    integer("n_positions", 2, kMostTokens).also("max_position_embeddings"),
    integer("n_embd", 1, kWidest).also("hidden_size"),
    integer("n_layer", 1, kDeepest).also("num_hidden_layers"),
    integer("n_head", 1, kWidest).also("num_attention_heads"),
    integer("n_inner", 1, 10 * kWidest).or_null(),
    above("layer_norm_epsilon", 0),
    at_least("initializer_range", 0),
    choice("activation_function", kActivationNames).because(kOtherActivations),
    fraction_below_one("embd_pdrop"),
    fraction_below_one("attn_pdrop"),
    fraction_below_one("resid_pdrop"),
    boolean("scale_attn_weights"),
    boolean("scale_attn_by_inverse_layer_idx"),
    only("reorder_and_upcast_attn", false),
    only("add_cross_attention", false),
    boolean("tie_word_embeddings"),
};
constexpr auto kAllRules = extended(std::to_array(kGpt2Rules), kLabelRules);
constexpr Section kGpt2{.rules = kAllRules, .other_keys = true};

// The no-op keys of GPT2Config: they do not change a training step.
constexpr std::string_view kNoOpKeys[] = {
    "n_ctx",
    "predict_special_tokens",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  return spec;
}

struct Preset {
  const char* name;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
};

constexpr Preset kPresets[] = {{"gpt2", 768, 12, 12},
                               {"gpt2-medium", 1024, 24, 16},
                               {"gpt2-large", 1280, 36, 20},
                               {"gpt2-xl", 1600, 48, 25},
                               {"distilgpt2", 768, 6, 12}};

Gpt2Settings settings_from(const json::object& object) {
  Gpt2Settings settings;
  take_value(object, "activation_function", settings.activation);
  take_value(object, "scale_attn_weights", settings.scales_scores);
  take_value(object, "scale_attn_by_inverse_layer_idx", settings.scales_by_inverse_layer);
  take_value(object, "tie_word_embeddings", settings.tied);
  return settings;
}

ModelSpec spec_from_checked(const json::object& object) {
  ModelSpec spec = default_spec();
  take_value(object, "vocab_size", spec.vocab_size);
  take_value(object, "n_positions", spec.max_positions);
  take_value(object, "n_embd", spec.hidden_size);
  take_value(object, "n_layer", spec.num_layers);
  take_value(object, "n_head", spec.num_heads);
  spec.inner_size = 4 * spec.hidden_size;
  take_value(object, "n_inner", spec.inner_size);
  take_value(object, "layer_norm_epsilon", spec.layer_norm_epsilon);
  take_value(object, "initializer_range", spec.initializer_range);
  take_value(object, "embd_pdrop", spec.embedding_dropout);
  take_value(object, "attn_pdrop", spec.attention_dropout);
  take_value(object, "resid_pdrop", spec.residual_dropout);
  spec.own = with_labels(to_own(settings_from(object)), object);
  return spec;
}

}  // namespace

std::vector<ModelSpec> presets() {
  std::vector<ModelSpec> all;
  for (const auto& entry : kPresets) {
    ModelSpec& spec = all.emplace_back(default_spec());
    spec.name = entry.name;
    spec.hidden_size = entry.hidden_size;
    spec.num_layers = entry.num_layers;
    spec.num_heads = entry.num_heads;
    spec.inner_size = 4 * entry.hidden_size;
  }
  return all;
}

std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  warn_of_unknown_keys(config, kGpt2, kNoOpKeys, "GPT-2", pointer, warnings);
  const auto faults = problems.count();
  const ModelSpec spec = spec_from_checked(check_section(config, kGpt2, pointer, problems));
  if (problems.count() == faults && spec.hidden_size % spec.num_heads != 0) {
    problems.add(
        child(pointer, "n_head"),
        concat("is ", spec.num_heads, ", which does not divide n_embd ", spec.hidden_size));
  }
  if (problems.count() > faults) return std::nullopt;
  return spec;
}

}  // namespace dstune::gpt2
