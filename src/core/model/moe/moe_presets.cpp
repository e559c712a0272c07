// The numbers of the published config.json files of models with experts.
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

struct MoePreset {
  Kin kin;
  const char* name;
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t inner_size;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_size;  ///< 0: absent
  std::int64_t positions;
  double theta;
  std::int64_t experts;
  std::int64_t chosen;
  std::int64_t expert_size;  ///< moe_intermediate_size
  std::int64_t shared_size;
  bool normalised;
};

constexpr double kTheta = 1e6;

// clang-format off
constexpr MoePreset kMoePresets[] = {
    {Kin::mixtral, "mixtral-8x7b", 32000, 4096, 14336, 32, 32, 8, 0, 32768, kTheta, 8, 2, 0, 0, true},
    {Kin::mixtral, "mixtral-8x22b", 32000, 6144, 16384, 56, 48, 8, 0, 65536, kTheta, 8, 2, 0, 0, true},
    {Kin::mixtral, "mixtral-8x22b-instruct", 32768, 6144, 16384, 56, 48, 8, 0, 65536, kTheta, 8, 2, 0, 0, true},
    {Kin::qwen2_moe, "qwen1.5-moe-a2.7b", 151936, 2048, 5632, 24, 16, 16, 0, 8192, kTheta, 60, 4, 1408, 5632, false},
    {Kin::qwen2_moe, "qwen2-57b-a14b", 151936, 3584, 18944, 28, 28, 4, 0, 131072, kTheta, 64, 8, 2560, 20480, false},
    {Kin::qwen3_moe, "qwen3-30b-a3b", 151936, 2048, 6144, 48, 32, 4, 128, 40960, kTheta, 128, 8, 768, 0, true},
    {Kin::qwen3_moe, "qwen3-coder-30b-a3b", 151936, 2048, 5472, 48, 32, 4, 128, 262144, 1e7, 128, 8, 768, 0, true},
    {Kin::qwen3_moe, "qwen3-235b-a22b", 151936, 4096, 12288, 94, 64, 4, 128, 40960, kTheta, 128, 8, 1536, 0, true},
};
// clang-format on

json::object moe_config_of(const MoePreset& preset) {
  const bool is_mixtral = preset.kin == Kin::mixtral;
  json::object config{{"vocab_size", preset.vocab_size},
                      {"hidden_size", preset.hidden_size},
                      {"intermediate_size", preset.inner_size},
                      {"num_hidden_layers", preset.layers},
                      {"num_attention_heads", preset.heads},
                      {"num_key_value_heads", preset.kv_heads},
                      {"max_position_embeddings", preset.positions},
                      {"rope_theta", preset.theta},
                      {"rms_norm_eps", is_mixtral ? 1e-5 : 1e-6},
                      {"num_experts_per_tok", preset.chosen},
                      {is_mixtral ? "num_local_experts" : "num_experts", preset.experts}};
  if (preset.head_size > 0) config["head_dim"] = preset.head_size;
  if (is_mixtral) return config;
  config["moe_intermediate_size"] = preset.expert_size;
  config["norm_topk_prob"] = preset.normalised;
  if (preset.shared_size > 0) config["shared_expert_intermediate_size"] = preset.shared_size;
  return config;
}

}  // namespace

std::vector<std::pair<std::string, json::object>> expert_presets(Kin kin) {
  std::vector<std::pair<std::string, json::object>> all;
  for (const MoePreset& preset : kMoePresets) {
    if (preset.kin == kin) all.emplace_back(preset.name, moe_config_of(preset));
  }
  return all;
}

}  // namespace dstune::llama
