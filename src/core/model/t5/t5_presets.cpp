#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

struct Preset {
  T5Variant variant;
  const char* name;
  std::int64_t d_model;
  std::int64_t d_ff;
  std::int64_t d_kv;
  std::int64_t num_layers;  ///< of either stack
  std::int64_t num_heads;
  bool is_first;  ///< as of 2019: ReLU and a tied head; the later ones are gated and untied
};

constexpr Preset kPresets[] = {
    {T5Variant::t5, "t5-small", 512, 2048, 64, 6, 8, true},
    {T5Variant::t5, "t5-base", 768, 3072, 64, 12, 12, true},
    {T5Variant::t5, "t5-large", 1024, 4096, 64, 24, 16, true},
    {T5Variant::t5, "t5-3b", 1024, 16384, 128, 24, 32, true},
    {T5Variant::t5, "t5-11b", 1024, 65536, 128, 24, 128, true},
    {T5Variant::t5, "t5-v1_1-small", 512, 1024, 64, 8, 6, false},
    {T5Variant::t5, "t5-v1_1-base", 768, 2048, 64, 12, 12, false},
    {T5Variant::t5, "t5-v1_1-large", 1024, 2816, 64, 24, 16, false},
    {T5Variant::t5, "t5-v1_1-xl", 2048, 5120, 64, 24, 32, false},
    {T5Variant::t5, "t5-v1_1-xxl", 4096, 10240, 64, 24, 64, false},
    {T5Variant::t5, "flan-t5-small", 512, 1024, 64, 8, 6, false},
    {T5Variant::t5, "flan-t5-base", 768, 2048, 64, 12, 12, false},
    {T5Variant::t5, "flan-t5-large", 1024, 2816, 64, 24, 16, false},
    {T5Variant::t5, "flan-t5-xl", 2048, 5120, 64, 24, 32, false},
    {T5Variant::t5, "flan-t5-xxl", 4096, 10240, 64, 24, 64, false},
    {T5Variant::mt5, "mt5-small", 512, 1024, 64, 8, 6, false},
    {T5Variant::mt5, "mt5-base", 768, 2048, 64, 12, 12, false},
    {T5Variant::mt5, "mt5-large", 1024, 2816, 64, 24, 16, false},
    {T5Variant::mt5, "mt5-xl", 2048, 5120, 64, 24, 32, false},
    {T5Variant::mt5, "mt5-xxl", 4096, 10240, 64, 24, 64, false},
};

ModelSpec spec_of(const Preset& preset) {
  ModelSpec spec;
  spec.name = preset.name;
  spec.vocab_size = preset.variant == T5Variant::mt5 ? 250112 : 32128;
  spec.max_positions = kLongest;
  spec.hidden_size = preset.d_model;
  spec.num_layers = preset.num_layers;
  spec.num_heads = preset.num_heads;
  spec.inner_size = preset.d_ff;
  spec.layer_norm_epsilon = 1e-6;
  spec.initializer_range = 1;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  spec.own = to_own({.head_size = preset.d_kv,
                     .decoder_layers = preset.num_layers,
                     .activation = preset.is_first ? "relu" : "gelu_new",
                     .gated = !preset.is_first,
                     .tied = preset.is_first,
                     .scales_output = preset.is_first});
  return spec;
}

}  // namespace

std::vector<ModelSpec> presets(T5Variant variant) {
  std::vector<ModelSpec> all;
  for (const Preset& preset : kPresets) {
    if (preset.variant == variant) all.push_back(spec_of(preset));
  }
  return all;
}

}  // namespace dstune::t5
