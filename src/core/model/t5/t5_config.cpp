#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr std::string_view kProjections =
    "relu|gated-gelu|gelu|gelu_new|silu|swish|gelu_fast|gelu_pytorch_tanh|quick_gelu|tanh|sigmoid|"
    "gelu_accurate|gated-gelu_accurate|"
    "gated-relu|gated-gelu_new|gated-silu|gated-swish|gated-gelu_fast|gated-gelu_pytorch_tanh|"
    "gated-quick_gelu|gated-tanh|gated-sigmoid";

constexpr KeyRule kRules[] = {
    integer("vocab_size", 2, kMostTokens),
    integer("d_model", 1, kWidest).also("hidden_size"),
    integer("d_kv", 1, kWidest).also("head_dim"),
    integer("d_ff", 1, 10 * kWidest),
    integer("num_layers", 1, kDeepest).also("num_hidden_layers"),
    integer("num_decoder_layers", 1, kDeepest).or_null(),
    integer("num_heads", 1, kWidest).also("num_attention_heads"),
    integer("relative_attention_num_buckets", 4, kWidest).must_be_even(),
    integer("relative_attention_max_distance", 1, kMostTokens),
    fraction_below_one("dropout_rate"),
    above("layer_norm_epsilon", 0),
    at_least("initializer_factor", 0),
    choice("feed_forward_proj", kProjections).because(kOtherActivations),
    boolean("tie_word_embeddings"),
    integer("decoder_start_token_id", 0, kMostTokens).or_null(),
    only("is_encoder_decoder", true),
    only("is_decoder", false),
};
constexpr Section kSection{.rules = kRules, .other_keys = true};

// Keys that follow from feed_forward_proj, belong to other tasks, or stand in published files
// alone.
constexpr std::string_view kNoOpKeys[] = {
    "classifier_dropout", "dense_act_fn", "is_gated_act", "n_positions", "scale_decoder_outputs",
};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec(T5Variant variant) {
  const bool multilingual = variant == T5Variant::mt5;
  ModelSpec spec;
  spec.vocab_size = multilingual ? 250112 : 32128;
  spec.max_positions = kLongest;
  spec.hidden_size = 512;
  spec.num_layers = multilingual ? 8 : 6;
  spec.num_heads = multilingual ? 6 : 8;
  spec.inner_size = multilingual ? 1024 : 2048;
  spec.layer_norm_epsilon = 1e-6;
  spec.initializer_range = 1;
  spec.residual_dropout = 0.1;
  return spec;
}

// "gated-gelu" means the function that Mesh TensorFlow calls gelu.
void take_projection(const json::object& object, T5Variant variant, T5Settings& settings) {
  std::string name = variant == T5Variant::mt5 ? "gated-gelu" : "relu";
  take_value(object, "feed_forward_proj", name);
  constexpr std::string_view kGated = "gated-";
  settings.gated = name.rfind(kGated, 0) == 0;
  settings.activation = settings.gated ? name.substr(kGated.size()) : name;
  if (name == "gated-gelu") settings.activation = "gelu_new";
}

// transformers ties the head whatever the file says, but leaves one of its own that a checkpoint
// has, as all have whose file says false. T5's file decides over the scale in any case.
T5Settings settings_from(const json::object& object, T5Variant variant, std::int64_t layers) {
  T5Settings settings{.decoder_layers = layers};
  take_value(object, "d_kv", settings.head_size);
  take_value(object, "num_decoder_layers", settings.decoder_layers);
  take_value(object, "relative_attention_num_buckets", settings.buckets);
  take_value(object, "relative_attention_max_distance", settings.max_distance);
  take_value(object, "tie_word_embeddings", settings.tied);
  take_value(object, "decoder_start_token_id", settings.start_token);
  settings.scales_output = settings.tied && variant == T5Variant::t5;
  take_projection(object, variant, settings);
  return settings;
}

ModelSpec spec_from(const json::object& object, T5Variant variant) {
  ModelSpec spec = default_spec(variant);
  take_value(object, "vocab_size", spec.vocab_size);
  take_value(object, "d_model", spec.hidden_size);
  take_value(object, "d_ff", spec.inner_size);
  take_value(object, "num_layers", spec.num_layers);
  take_value(object, "num_heads", spec.num_heads);
  take_value(object, "layer_norm_epsilon", spec.layer_norm_epsilon);
  take_value(object, "initializer_factor", spec.initializer_range);
  take_value(object, "dropout_rate", spec.residual_dropout);
  spec.embedding_dropout = spec.residual_dropout;
  spec.attention_dropout = spec.residual_dropout;
  return spec;
}

void check(const ModelSpec& spec, const T5Settings& settings, std::string_view pointer,
           Problems& problems) {
  if (spec.num_heads * settings.head_size > kMostHeadColumns) {
    problems.add(child(pointer, "d_kv"),
                 concat("times num_heads is ", spec.num_heads * settings.head_size,
                        "; accepted: at most ", kMostHeadColumns));
  }
  if (settings.max_distance <= settings.buckets / 2) {
    problems.add(child(pointer, "relative_attention_max_distance"),
                 concat("is ", settings.max_distance, "; accepted: an integer above ",
                        settings.buckets / 2, ", half of relative_attention_num_buckets"));
  }
  if (settings.start_token >= spec.vocab_size) {
    problems.add(child(pointer, "decoder_start_token_id"),
                 concat("is ", settings.start_token, "; accepted: an integer below vocab_size ",
                        spec.vocab_size));
  }
}

}  // namespace

std::optional<ModelSpec> read(T5Variant variant, const json::object& config,
                              std::string_view pointer, Problems& problems,
                              std::vector<std::string>& warnings) {
  const std::string_view written = variant == T5Variant::mt5 ? "mT5" : "T5";
  warn_of_unknown_keys(config, kSection, kNoOpKeys, written, pointer, warnings);
  const auto faults = problems.count();
  const json::object values = check_section(config, kSection, pointer, problems);
  if (problems.count() > faults) return std::nullopt;
  ModelSpec spec = spec_from(values, variant);
  const T5Settings settings = settings_from(values, variant, spec.num_layers);
  check(spec, settings, pointer, problems);
  if (problems.count() > faults) return std::nullopt;
  spec.own = to_own(settings);
  return spec;
}

}  // namespace dstune::t5
