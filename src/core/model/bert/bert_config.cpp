#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/bert/bert_keys.hpp"
#include "core/model/config_keys.hpp"

namespace dstune::bert {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kOfBert[] = {
    integer("hidden_size", 1, kWidest),
    integer("num_hidden_layers", 1, kDeepest),
    integer("num_attention_heads", 1, kWidest),
    integer("intermediate_size", 1, 10 * kWidest),
    integer("type_vocab_size", 1, kMostTokens),
    above("layer_norm_eps", 0),
    choice("hidden_act", kActivationNames).because(kOtherActivations),
    fraction_below_one("hidden_dropout_prob"),
    fraction_below_one("attention_probs_dropout_prob"),
    fraction_below_one("classifier_dropout").or_null(),
    choice("position_embedding_type", "absolute").or_null(),
    only("is_decoder", false),
    only("add_cross_attention", false),
};
constexpr auto kRules = extended(std::to_array(kOfAll), kOfBert);
constexpr Section kSection{.rules = kRules, .other_keys = true};

// The no-op keys of published files: they do not change a training step.
constexpr std::string_view kNoOpKeys[] = {
    "directionality",       "pooler_fc_size",       "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec(Variant kin) {
  ModelSpec spec;
  spec.vocab_size = kin == Variant::roberta ? 50265 : 30522;
  spec.max_positions = 512;
  spec.layer_norm_epsilon = 1e-12;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  return spec;
}

void read_sizes(const SectionReader& reader, ModelSpec& spec) {
  reader.read("hidden_size", spec.hidden_size);
  reader.read("num_hidden_layers", spec.num_layers);
  reader.read("num_attention_heads", spec.num_heads);
  reader.read("intermediate_size", spec.inner_size);
  reader.read("layer_norm_eps", spec.layer_norm_epsilon);
  reader.read("hidden_dropout_prob", spec.residual_dropout);
  reader.read("attention_probs_dropout_prob", spec.attention_dropout);
  spec.embedding_dropout = spec.residual_dropout;
  spec.classifier_dropout = spec.residual_dropout;
  reader.read("classifier_dropout", spec.classifier_dropout);
}

// Positions are counted from behind the padding token.
void take_off_padding(ModelSpec& spec, const Settings& settings, std::string_view pointer,
                      Problems& problems) {
  if (!settings.pad_token) {
    problems.add(child(pointer, "pad_token_id"),
                 "is null; accepted: an integer, from which positions are counted");
    return;
  }
  const std::int64_t least = *settings.pad_token + 3;
  if (spec.max_positions < least) {
    problems.add(child(pointer, "max_position_embeddings"),
                 concat("is ", spec.max_positions, "; accepted: an integer from ", least,
                        " on: positions begin behind pad_token_id ", *settings.pad_token));
    return;
  }
  spec.max_positions -= *settings.pad_token + 1;
}

}  // namespace

std::optional<ModelSpec> read_bert(Variant kin, const json::object& config,
                                   std::string_view pointer, Problems& problems,
                                   std::vector<std::string>& warnings) {
  const std::string_view written = kin == Variant::roberta ? "RoBERTa" : "BERT";
  warn_of_unknown_keys(config, kSection, kNoOpKeys, written, pointer, warnings);
  const auto faults = problems.count();
  const SectionReader reader(json::value(config), kSection, pointer, problems);
  ModelSpec spec = default_spec(kin);
  Settings settings{.type_vocab_size = 2, .pad_token = kin == Variant::roberta ? 1 : 0};
  read_common(config, reader, spec, settings);
  read_sizes(reader, spec);
  reader.read("type_vocab_size", settings.type_vocab_size);
  reader.read("hidden_act", settings.activation);
  if (problems.count() == faults) {
    check_common(config, spec, settings, "num_attention_heads", "hidden_size", pointer, problems);
    if (kin == Variant::roberta) take_off_padding(spec, settings, pointer, problems);
  }
  if (problems.count() > faults) return std::nullopt;
  spec.own = to_own(settings);
  return spec;
}

}  // namespace dstune::bert
