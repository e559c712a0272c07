#include <array>

#include "core/model/deberta/deberta.hpp"

namespace dstune::deberta {

namespace {

struct Preset {
  const char* name;
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
  std::int64_t conv_kernel_size;
};

constexpr std::array<Preset, 7> kPresets = {{
    {"deberta-v3-xsmall", 128100, 384, 12, 6, 0},
    {"deberta-v3-small", 128100, 768, 6, 12, 0},
    {"deberta-v3-base", 128100, 768, 12, 12, 0},
    {"deberta-v3-large", 128100, 1024, 24, 16, 0},
    {"mdeberta-v3-base", 251000, 768, 12, 12, 0},
    {"deberta-v2-xlarge", 128100, 1536, 24, 24, 3},
    {"deberta-v2-xxlarge", 128100, 1536, 48, 24, 3},
}};

// 512 positions, f = 4 h, 256 buckets, shared projections, dropout 0.1, in all of them.
ModelSpec spec_of(const Preset& preset) {
  ModelSpec spec;
  spec.name = preset.name;
  spec.vocab_size = preset.vocab_size;
  spec.max_positions = 512;
  spec.hidden_size = preset.hidden_size;
  spec.num_layers = preset.num_layers;
  spec.num_heads = preset.num_heads;
  spec.inner_size = 4 * preset.hidden_size;
  spec.layer_norm_epsilon = 1e-7;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  spec.classifier_dropout = 0.1;
  DebertaSettings settings;
  settings.common = {.type_vocab_size = 0, .pad_token = 0};
  settings.embedding_size = preset.hidden_size;
  settings.position_biased_input = false;
  settings.relative_attention = settings.c2p = settings.p2c = true;
  settings.share_att_key = settings.norm_rel_ebd = true;
  settings.position_buckets = 256;
  settings.most_distance = 512;
  settings.conv_kernel_size = preset.conv_kernel_size;
  if (preset.conv_kernel_size > 0) settings.conv_activation = "gelu";
  spec.own = to_own(settings);
  return spec;
}

}  // namespace

std::vector<ModelSpec> presets() {
  std::vector<ModelSpec> all;
  all.reserve(kPresets.size());
  for (const Preset& preset : kPresets) all.push_back(spec_of(preset));
  return all;
}

}  // namespace dstune::deberta
