// The numbers of the published config.json files.
#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "core/base/json.hpp"
#include "core/model/llama/llama.hpp"
#include "core/model/llama/llama_kin.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

/// rope_scaling of the kind longrope: up to the first context, and beyond it.
struct LongRope {
  std::span<const double> short_factor;
  std::span<const double> long_factor;
};

/// A setting that is 0 is absent, or is the kin's default.
struct Preset {
  Kin kin;
  const char* name;
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t inner_size;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t positions;
  double theta;
  double epsilon;
  bool tied = false;
  std::int64_t window = 0;     ///< sliding_window
  double llama3_factor = 0;    ///< of rope_type llama3
  double score_scalar = 0;     ///< query_pre_attn_scalar
  std::int64_t head_size = 0;  ///< head_dim
  double partial_rotary = 1;   ///< partial_rotary_factor
  const LongRope* long_rope = nullptr;
  double linear_factor = 0;  ///< of rope_type linear
};

constexpr double kMillion = 1e6;
// clang-format off
constexpr double kPhi35MiniShort[] = {
    1.0, 1.0199999809265137, 1.0299999713897705, 1.0299999713897705, 1.0499999523162842,
    1.0499999523162842, 1.0499999523162842, 1.0499999523162842, 1.0499999523162842,
    1.0699999332427979, 1.0999999046325684, 1.1099998950958252, 1.1599998474121094,
    1.1599998474121094, 1.1699998378753662, 1.2899998426437378, 1.339999794960022,
    1.679999828338623, 1.7899998426437378, 1.8199998140335083, 1.8499997854232788,
    1.8799997568130493, 1.9099997282028198, 1.9399996995925903, 1.9899996519088745,
    2.0199997425079346, 2.0199997425079346, 2.0199997425079346, 2.0199997425079346,
    2.0199997425079346, 2.0199997425079346, 2.0299997329711914, 2.0299997329711914,
    2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0299997329711914,
    2.0299997329711914, 2.0299997329711914, 2.0299997329711914, 2.0799996852874756,
    2.0899996757507324, 2.189999580383301, 2.2199995517730713, 2.5899994373321533,
    2.729999542236328, 2.749999523162842, 2.8399994373321533};
constexpr double kPhi35MiniLong[] = {
    1.0800000429153442, 1.1100000143051147, 1.1399999856948853, 1.340000033378601,
    1.5899999141693115, 1.600000023841858, 1.6200000047683716, 2.620000123977661,
    3.2300000190734863, 3.2300000190734863, 4.789999961853027, 7.400000095367432,
    7.700000286102295, 9.09000015258789, 12.199999809265137, 17.670000076293945,
    24.46000099182129, 28.57000160217285, 30.420001983642578, 30.840002059936523,
    32.590003967285156, 32.93000411987305, 42.320003509521484, 44.96000289916992,
    50.340003967285156, 50.45000457763672, 57.55000305175781, 57.93000411987305,
    58.21000289916992, 60.1400032043457, 62.61000442504883, 62.62000274658203, 62.71000289916992,
    63.1400032043457, 63.1400032043457, 63.77000427246094, 63.93000411987305, 63.96000289916992,
    63.970001220703125, 64.02999877929688, 64.06999969482422, 64.08000183105469,
    64.12000274658203, 64.41000366210938, 64.4800033569336, 64.51000213623047, 64.52999877929688,
    64.83999633789062};
// clang-format on
constexpr LongRope kPhi35Mini = {kPhi35MiniShort, kPhi35MiniLong};
constexpr double kPhi4MiniLong[] = {
    1,           1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897,  1.956131817,
    2.187582649, 2.446418898, 2.735880826, 3.059592084, 3.421605075, 3.826451687, 4.279200023,
    4.785517845, 5.351743533, 5.984965424, 6.693110555, 7.485043894, 8.370679318, 9.36110372,
    10.4687158,  11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283, 20.47818807,
    22.90118105, 25.61086418, 28.64115884, 32.03,       32.1,        32.13,       32.23,
    32.6,        32.61,       32.64,       32.66,       32.7,        32.71,       32.93,
    32.97,       33.28,       33.49,       33.5,        44.16,       47.77};
constexpr std::array<double, std::size(kPhi4MiniLong)> kPhi4MiniShort = [] {
  std::array<double, std::size(kPhi4MiniLong)> factors{};
  factors.fill(1);
  return factors;
}();
constexpr LongRope kPhi4Mini = {kPhi4MiniShort, kPhi4MiniLong};

// clang-format off
constexpr Preset kPresets[] = {
    {Kin::llama, "llama-2-7b", 32000, 4096, 11008, 32, 32, 32, 4096, 1e4, 1e-5},
    {Kin::llama, "llama-2-13b", 32000, 5120, 13824, 40, 40, 40, 4096, 1e4, 1e-5},
    {Kin::llama, "llama-2-70b", 32000, 8192, 28672, 80, 64, 8, 4096, 1e4, 1e-5},
    {Kin::llama, "llama-3-8b", 128256, 4096, 14336, 32, 32, 8, 8192, 5e5, 1e-5},
    {Kin::llama, "llama-3-70b", 128256, 8192, 28672, 80, 64, 8, 8192, 5e5, 1e-5},
    {Kin::llama, "llama-3.1-8b", 128256, 4096, 14336, 32, 32, 8, 131072, 5e5, 1e-5, false, 0, 8},
    {Kin::llama, "llama-3.1-70b", 128256, 8192, 28672, 80, 64, 8, 131072, 5e5, 1e-5, false, 0, 8},
    {Kin::llama, "llama-3.1-405b", 128256, 16384, 53248, 126, 128, 8, 131072, 5e5, 1e-5, false, 0, 8},
    {Kin::llama, "llama-3.2-1b", 128256, 2048, 8192, 16, 32, 8, 131072, 5e5, 1e-5, true, 0, 32},
    {Kin::llama, "llama-3.2-3b", 128256, 3072, 8192, 28, 24, 8, 131072, 5e5, 1e-5, true, 0, 32},
    {Kin::llama, "tinyllama-1.1b", 32000, 2048, 5632, 22, 32, 4, 2048, 1e4, 1e-5},
    {Kin::llama, "smollm2-135m", 49152, 576, 1536, 30, 9, 3, 8192, 1e5, 1e-5, true},
    {Kin::llama, "smollm2-360m", 49152, 960, 2560, 32, 15, 5, 8192, 1e5, 1e-5, true},
    {Kin::llama, "smollm2-1.7b", 49152, 2048, 8192, 24, 32, 32, 8192, 130000, 1e-5, true},
    {Kin::llama, "codellama-7b", 32016, 4096, 11008, 32, 32, 32, 16384, kMillion, 1e-5},
    {Kin::llama, "yi-6b", 64000, 4096, 11008, 32, 32, 4, 4096, 5e6, 1e-5},
    {Kin::llama, "deepseek-llm-7b", 102400, 4096, 11008, 30, 32, 32, 4096, 1e4, 1e-6},
    {Kin::mistral, "mistral-7b-v0.1", 32000, 4096, 14336, 32, 32, 8, 32768, 1e4, 1e-5, false, 4096},
    {Kin::mistral, "mistral-7b-v0.2", 32000, 4096, 14336, 32, 32, 8, 32768, kMillion, 1e-5},
    {Kin::mistral, "mistral-7b-v0.3", 32768, 4096, 14336, 32, 32, 8, 32768, kMillion, 1e-5},
    {Kin::mistral, "mistral-nemo-12b", 131072, 5120, 14336, 40, 32, 8, 128000, kMillion, 1e-5, false, 0, 0, 0, 128},
    {Kin::qwen2, "qwen2-0.5b", 151936, 896, 4864, 24, 14, 2, 131072, kMillion, 1e-6, true},
    {Kin::qwen2, "qwen2-1.5b", 151936, 1536, 8960, 28, 12, 2, 131072, kMillion, 1e-6, true},
    {Kin::qwen2, "qwen2-7b", 152064, 3584, 18944, 28, 28, 4, 131072, kMillion, 1e-6},
    {Kin::qwen2, "qwen2.5-0.5b", 151936, 896, 4864, 24, 14, 2, 32768, kMillion, 1e-6, true},
    {Kin::qwen2, "qwen2.5-1.5b", 151936, 1536, 8960, 28, 12, 2, 131072, kMillion, 1e-6, true},
    {Kin::qwen2, "qwen2.5-3b", 151936, 2048, 11008, 36, 16, 2, 32768, kMillion, 1e-6, true},
    {Kin::qwen2, "qwen2.5-7b", 152064, 3584, 18944, 28, 28, 4, 131072, kMillion, 1e-6},
    {Kin::qwen2, "qwen2.5-14b", 152064, 5120, 13824, 48, 40, 8, 131072, kMillion, 1e-5},
    {Kin::qwen2, "qwen2.5-32b", 152064, 5120, 27648, 64, 40, 8, 131072, kMillion, 1e-5},
    {Kin::qwen2, "qwen2.5-72b", 152064, 8192, 29568, 80, 64, 8, 131072, kMillion, 1e-5},
    {Kin::qwen3, "qwen3-0.6b", 151936, 1024, 3072, 28, 16, 8, 40960, kMillion, 1e-6, true},
    {Kin::qwen3, "qwen3-1.7b", 151936, 2048, 6144, 28, 16, 8, 40960, kMillion, 1e-6, true},
    {Kin::qwen3, "qwen3-4b", 151936, 2560, 9728, 36, 32, 8, 40960, kMillion, 1e-6, true},
    {Kin::qwen3, "qwen3-8b", 151936, 4096, 12288, 36, 32, 8, 40960, kMillion, 1e-6},
    {Kin::qwen3, "qwen3-14b", 151936, 5120, 17408, 40, 40, 8, 40960, kMillion, 1e-6},
    {Kin::qwen3, "qwen3-32b", 151936, 5120, 25600, 64, 64, 8, 40960, kMillion, 1e-6},
    {Kin::gemma, "gemma-2b", 256000, 2048, 16384, 18, 8, 1, 8192, 1e4, 1e-6, true},
    {Kin::gemma, "gemma-7b", 256000, 3072, 24576, 28, 16, 16, 8192, 1e4, 1e-6, true},
    {Kin::gemma2, "gemma-2-2b", 256000, 2304, 9216, 26, 8, 4, 8192, 1e4, 1e-6, true},
    {Kin::gemma2, "gemma-2-9b", 256000, 3584, 14336, 42, 16, 8, 8192, 1e4, 1e-6, true},
    {Kin::gemma2, "gemma-2-27b", 256000, 4608, 36864, 46, 32, 16, 8192, 1e4, 1e-6, true, 0, 0, 144, 128},
    {Kin::gemma3_text, "gemma-3-270m", 262144, 640, 2048, 18, 4, 1, 32768, kMillion, 1e-6, true, 512},
    {Kin::gemma3_text, "gemma-3-1b", 262144, 1152, 6912, 26, 4, 1, 32768, kMillion, 1e-6, true, 512},
    {Kin::gemma3_text, "gemma-3-4b", 262208, 2560, 10240, 34, 8, 4, 131072, kMillion, 1e-6, true, 1024, 0, 0, 0, 1, nullptr, 8},
    {Kin::gemma3_text, "gemma-3-12b", 262208, 3840, 15360, 48, 16, 8, 131072, kMillion, 1e-6, true, 1024, 0, 0, 0, 1, nullptr, 8},
    {Kin::gemma3_text, "gemma-3-27b", 262208, 5376, 21504, 62, 32, 16, 131072, kMillion, 1e-6, true, 1024, 0, 168, 128, 1, nullptr, 8},
    {Kin::phi3, "phi-3-mini-4k", 32064, 3072, 8192, 32, 32, 32, 4096, 1e4, 1e-5, false, 2047},
    {Kin::phi3, "phi-3-medium-4k", 32064, 5120, 17920, 40, 40, 10, 4096, 1e4, 1e-5, false, 2047},
    {Kin::phi3, "phi-3.5-mini", 32064, 3072, 8192, 32, 32, 32, 131072, 1e4, 1e-5, false, 262144, 0, 0, 0, 1, &kPhi35Mini},
    {Kin::phi3, "phi-4", 100352, 5120, 17920, 40, 40, 10, 16384, 250000, 1e-5},
    {Kin::phi3, "phi-4-mini", 200064, 3072, 8192, 32, 24, 8, 131072, 1e4, 1e-5, true, 262144, 0, 0, 0, 0.75, &kPhi4Mini},
};
// clang-format on

json::object config_of(const Preset& preset) {
  json::object config{{"vocab_size", preset.vocab_size},
                      {"hidden_size", preset.hidden_size},
                      {"intermediate_size", preset.inner_size},
                      {"num_hidden_layers", preset.layers},
                      {"num_attention_heads", preset.heads},
                      {"num_key_value_heads", preset.kv_heads},
                      {"max_position_embeddings", preset.positions},
                      {"rope_theta", preset.theta},
                      {"rms_norm_eps", preset.epsilon},
                      {"tie_word_embeddings", preset.tied}};
  if (preset.kin == Kin::mistral) config["sliding_window"] = nullptr;
  if (preset.window > 0) config["sliding_window"] = preset.window;
  if (preset.score_scalar > 0) config["query_pre_attn_scalar"] = preset.score_scalar;
  if (preset.head_size > 0) config["head_dim"] = preset.head_size;
  if (preset.partial_rotary < 1) config["partial_rotary_factor"] = preset.partial_rotary;
  if (preset.long_rope != nullptr) {
    const auto list = [](std::span<const double> factors) {
      return json::array(factors.begin(), factors.end());
    };
    config["rope_scaling"] = json::object{{"type", "longrope"},
                                          {"long_factor", list(preset.long_rope->long_factor)},
                                          {"short_factor", list(preset.long_rope->short_factor)}};
  }
  if (preset.linear_factor > 0) {
    config["rope_scaling"] =
        json::object{{"rope_type", "linear"}, {"factor", preset.linear_factor}};
  }
  if (preset.llama3_factor > 0) {
    config["rope_scaling"] = json::object{{"rope_type", "llama3"},
                                          {"factor", preset.llama3_factor},
                                          {"low_freq_factor", 1.0},
                                          {"high_freq_factor", 4.0},
                                          {"original_max_position_embeddings", 8192}};
  }
  return config;
}

ModelSpec preset_of(Kin kin, const std::string& name, const json::object& config) {
  Problems problems(name);
  std::vector<std::string> warnings;
  auto spec = read(kin, config, "", problems, warnings);
  problems.throw_if_any();
  spec->name = name;
  return *std::move(spec);
}

}  // namespace

std::vector<ModelSpec> presets(Kin kin) {
  std::vector<ModelSpec> all;
  for (const Preset& preset : kPresets) {
    if (preset.kin == kin) all.push_back(preset_of(kin, preset.name, config_of(preset)));
  }
  for (const auto& [name, config] : expert_presets(kin))
    all.push_back(preset_of(kin, name, config));
  return all;
}

}  // namespace dstune::llama
