#include "core/model/activation_names.hpp"
#include "core/model/bert/bert_keys.hpp"
#include "core/model/config_keys.hpp"

namespace dstune::bert {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr KeyRule kOfDistilbert[] = {
    integer("dim", 1, kWidest).also("hidden_size"),
    integer("n_layers", 1, kDeepest).also("num_hidden_layers"),
    integer("n_heads", 1, kWidest).also("num_attention_heads"),
    integer("hidden_dim", 1, 10 * kWidest),
    choice("activation", kActivationNames).because(kOtherActivations),
    fraction_below_one("dropout"),
    fraction_below_one("attention_dropout"),
    fraction_below_one("seq_classif_dropout"),
    only("sinusoidal_pos_embds", false),
};
constexpr auto kDistilbertRules = extended(std::to_array(kOfAll), kOfDistilbert);
constexpr Section kDistilbertSection{.rules = kDistilbertRules, .other_keys = true};

// The no-op keys of published files: they do not change a training step.
constexpr std::string_view kDistilbertNoOpKeys[] = {"qa_dropout", "tie_weights_"};

// The values that Hugging Face takes for keys that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.vocab_size = 30522;
  spec.max_positions = 512;
  spec.num_layers = 6;
  spec.layer_norm_epsilon = 1e-12;  // no key has it
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  spec.classifier_dropout = 0.2;
  return spec;
}

}  // namespace

std::optional<ModelSpec> read_distilbert(const json::object& config, std::string_view pointer,
                                         Problems& problems, std::vector<std::string>& warnings) {
  warn_of_unknown_keys(config, kDistilbertSection, kDistilbertNoOpKeys, "DistilBERT", pointer,
                       warnings);
  const auto faults = problems.count();
  const SectionReader reader(json::value(config), kDistilbertSection, pointer, problems);
  ModelSpec spec = default_spec();
  Settings settings{.pad_token = 0};
  read_common(config, reader, spec, settings);
  reader.read("dim", spec.hidden_size);
  reader.read("n_layers", spec.num_layers);
  reader.read("n_heads", spec.num_heads);
  reader.read("hidden_dim", spec.inner_size);
  reader.read("dropout", spec.residual_dropout);
  reader.read("attention_dropout", spec.attention_dropout);
  reader.read("seq_classif_dropout", spec.classifier_dropout);
  spec.embedding_dropout = spec.residual_dropout;
  reader.read("activation", settings.activation);
  if (problems.count() == faults) {
    check_common(config, spec, settings, "n_heads", "dim", pointer, problems);
  }
  if (problems.count() > faults) return std::nullopt;
  spec.own = to_own(settings);
  return spec;
}

}  // namespace dstune::bert
