#include <algorithm>
#include <array>

#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/bert/bert_keys.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/deberta/deberta_checks.hpp"

namespace dstune::deberta {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr std::string_view kOneKernel = "gelu|gelu_pytorch_tanh|relu|sigmoid|silu|swish|tanh";

constexpr KeyRule kOwn[] = {
    integer("hidden_size", 1, kWidest),
    integer("num_hidden_layers", 1, kDeepest),
    integer("num_attention_heads", 1, kWidest),
    integer("intermediate_size", 1, 10 * kWidest),
    integer("embedding_size", 1, kWidest),
    integer("attention_head_size", 1, kWidest),
    integer("type_vocab_size", 0, kMostTokens),
    above("layer_norm_eps", 0),
    choice("hidden_act", kActivationNames).because(kOtherActivations),
    fraction_below_one("hidden_dropout_prob"),
    fraction_below_one("attention_probs_dropout_prob"),
    fraction_below_one("cls_dropout").or_null(),
    boolean("position_biased_input"),
    boolean("relative_attention"),
    integer("max_relative_positions", -1, kMostTokens),
    integer("position_buckets", -1, kMostTokens),
    any("pos_att_type"),
    boolean("share_att_key"),
    choice("norm_rel_ebd", "none|layer_norm").in_any_case(),
    integer("conv_kernel_size", 0, kWidest),
    integer("conv_groups", 1, 1).because("; groups of a convolution are not modelled"),
    choice("conv_act", kOneKernel).because(kOtherActivations),
    integer("pooler_hidden_size", 1, kWidest),
    choice("pooler_hidden_act", kOneKernel).because(kOtherActivations),
    within("pooler_dropout", 0, 0).because("; dropout before the pooler is not modelled"),
    only("legacy", true).because("; the other head of masked tokens is not modelled"),
};
constexpr auto kRules = extended(std::to_array(bert::kOfAll), kOwn);
constexpr Section kSection{.rules = kRules, .other_keys = true};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.vocab_size = 128100;
  spec.max_positions = 512;
  spec.hidden_size = 1536;
  spec.num_layers = 24;
  spec.num_heads = 24;
  spec.inner_size = 6144;
  spec.layer_norm_epsilon = 1e-7;
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
  reader.read("cls_dropout", spec.classifier_dropout);
}

void read_positions(const SectionReader& reader, const ModelSpec& spec, DebertaSettings& settings) {
  reader.read("position_biased_input", settings.position_biased_input);
  reader.read("relative_attention", settings.relative_attention);
  reader.read("share_att_key", settings.share_att_key);
  std::int64_t most = -1;
  reader.read("max_relative_positions", most);
  settings.most_distance = most < 1 ? spec.max_positions : most;
  std::int64_t buckets = -1;
  reader.read("position_buckets", buckets);
  settings.position_buckets = std::max<std::int64_t>(buckets, 0);
  std::string norm = "none";
  reader.read("norm_rel_ebd", norm);
  settings.norm_rel_ebd = norm == "layer_norm";
}

void read_rest(const SectionReader& reader, const ModelSpec& spec, DebertaSettings& settings) {
  reader.read("hidden_act", settings.common.activation);
  reader.read("type_vocab_size", settings.common.type_vocab_size);
  settings.embedding_size = spec.hidden_size;
  reader.read("embedding_size", settings.embedding_size);
  reader.read("conv_kernel_size", settings.conv_kernel_size);
  reader.read("conv_act", settings.conv_activation);
  reader.read("pooler_hidden_act", settings.pooler_activation);
  settings.loss_in_fp32 = reader.find("problem_type") == nullptr;
}

}  // namespace

std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  warn_of_unknown_keys(config, kSection, {}, "DeBERTa", pointer, warnings);
  const auto faults = problems.count();
  const SectionReader reader(json::value(config), kSection, pointer, problems);
  ModelSpec spec = default_spec();
  DebertaSettings settings;
  settings.common.pad_token = 0;
  bert::read_common(config, reader, spec, settings.common);
  read_sizes(reader, spec);
  read_positions(reader, spec, settings);
  read_rest(reader, spec, settings);
  read_pos_att_type(config, pointer, settings, problems);
  if (problems.count() == faults) check(config, spec, settings, pointer, problems);
  if (problems.count() > faults) return std::nullopt;
  spec.own = to_own(settings);
  return spec;
}

}  // namespace dstune::deberta
