#include <array>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/labels.hpp"
#include "core/model/opt/opt.hpp"

namespace dstune::opt {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kOptRules[] = {
    integer("vocab_size", 1, kMostTokens),
    integer("max_position_embeddings", 2, kMostTokens),
    integer("hidden_size", 1, kWidest),
    integer("num_hidden_layers", 1, kDeepest),
    integer("num_attention_heads", 1, kWidest),
    integer("ffn_dim", 1, 10 * kWidest),
    integer("word_embed_proj_dim", 1, kWidest).or_null(),
    at_least("init_std", 0),
    choice("activation_function", kActivationNames).because(kOtherActivations),
    fraction_below_one("dropout"),
    fraction_below_one("attention_dropout"),
    within("layerdrop", 0, 0).because("; layers that are left out at random are not modelled"),
    boolean("do_layer_norm_before"),
    boolean("_remove_final_layer_norm"),
    boolean("enable_bias"),
    boolean("layer_norm_elementwise_affine"),
    boolean("tie_word_embeddings"),
};
constexpr auto kAllRules = extended(std::to_array(kOptRules), kLabelRules);
constexpr Section kOpt{.rules = kAllRules, .other_keys = true};

// The no-op keys of published files: they do not change a training step.
constexpr std::string_view kNoOpKeys[] = {
    "activation_dropout",
    "forced_eos_token_id",
    "num_beams",
};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.vocab_size = 50272;
  spec.max_positions = 2048;
  spec.residual_dropout = 0.1;
  return spec;
}

OptSettings settings_from(const json::object& object, const ModelSpec& spec) {
  OptSettings settings;
  settings.embedding_size = spec.hidden_size;
  take_value(object, "word_embed_proj_dim", settings.embedding_size);
  take_value(object, "activation_function", settings.activation);
  take_value(object, "do_layer_norm_before", settings.norm_before);
  take_value(object, "_remove_final_layer_norm", settings.removes_final_norm);
  take_value(object, "enable_bias", settings.has_bias);
  take_value(object, "layer_norm_elementwise_affine", settings.norm_parameters);
  take_value(object, "tie_word_embeddings", settings.tied);
  return settings;
}

ModelSpec spec_from(const json::object& object) {
  ModelSpec spec = default_spec();
  take_value(object, "vocab_size", spec.vocab_size);
  take_value(object, "max_position_embeddings", spec.max_positions);
  take_value(object, "hidden_size", spec.hidden_size);
  take_value(object, "num_hidden_layers", spec.num_layers);
  take_value(object, "num_attention_heads", spec.num_heads);
  take_value(object, "ffn_dim", spec.inner_size);
  take_value(object, "init_std", spec.initializer_range);
  take_value(object, "dropout", spec.residual_dropout);
  take_value(object, "attention_dropout", spec.attention_dropout);
  spec.own = with_labels(to_own(settings_from(object, spec)), object);
  return spec;
}

}  // namespace

std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  warn_of_unknown_keys(config, kOpt, kNoOpKeys, "OPT", pointer, warnings);
  const auto faults = problems.count();
  const ModelSpec spec = spec_from(check_section(config, kOpt, pointer, problems));
  if (problems.count() == faults && spec.hidden_size % spec.num_heads != 0) {
    problems.add(
        child(pointer, "num_attention_heads"),
        concat("is ", spec.num_heads, ", which does not divide hidden_size ", spec.hidden_size));
  }
  if (problems.count() > faults) return std::nullopt;
  return spec;
}

}  // namespace dstune::opt
