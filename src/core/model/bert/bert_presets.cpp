#include <array>

#include "core/model/bert/bert.hpp"

namespace dstune::bert {

namespace {

struct Preset {
  Variant kin;
  const char* name;
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
};

constexpr std::array<Preset, 15> kPresets = {{
    {Variant::bert, "bert-base-uncased", 30522, 768, 12, 12},
    {Variant::bert, "bert-large-uncased", 30522, 1024, 24, 16},
    {Variant::bert, "bert-base-cased", 28996, 768, 12, 12},
    {Variant::bert, "bert-large-cased", 28996, 1024, 24, 16},
    {Variant::bert, "bert-base-chinese", 21128, 768, 12, 12},
    {Variant::bert, "bert-base-multilingual-cased", 119547, 768, 12, 12},
    {Variant::bert, "bert-base-multilingual-uncased", 105879, 768, 12, 12},
    {Variant::roberta, "roberta-base", 50265, 768, 12, 12},
    {Variant::roberta, "roberta-large", 50265, 1024, 24, 16},
    {Variant::roberta, "distilroberta-base", 50265, 768, 6, 12},
    {Variant::roberta, "xlm-roberta-base", 250002, 768, 12, 12},
    {Variant::roberta, "xlm-roberta-large", 250002, 1024, 24, 16},
    {Variant::distilbert, "distilbert-base-uncased", 30522, 768, 6, 12},
    {Variant::distilbert, "distilbert-base-cased", 28996, 768, 6, 12},
    {Variant::distilbert, "distilbert-base-multilingual-cased", 119547, 768, 6, 12},
}};

// 512 positions, f = 4 h, dropout 0.1 but before DistilBERT's classifier, in all of them.
ModelSpec spec_of(const Preset& preset) {
  ModelSpec spec;
  spec.name = preset.name;
  spec.vocab_size = preset.vocab_size;
  spec.max_positions = 512;
  spec.hidden_size = preset.hidden_size;
  spec.num_layers = preset.num_layers;
  spec.num_heads = preset.num_heads;
  spec.inner_size = 4 * preset.hidden_size;
  spec.layer_norm_epsilon = preset.kin == Variant::roberta ? 1e-5 : 1e-12;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  spec.classifier_dropout = preset.kin == Variant::distilbert ? 0.2 : 0.1;
  Settings settings{.type_vocab_size = 2, .pad_token = 0};
  if (preset.kin == Variant::roberta) settings = {.type_vocab_size = 1, .pad_token = 1};
  if (preset.kin == Variant::distilbert) settings.type_vocab_size = 0;
  spec.own = to_own(settings);
  return spec;
}

}  // namespace

std::vector<ModelSpec> presets(Variant kin) {
  std::vector<ModelSpec> all;
  for (const Preset& preset : kPresets) {
    if (preset.kin == kin) all.push_back(spec_of(preset));
  }
  return all;
}

}  // namespace dstune::bert
