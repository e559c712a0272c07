#include <cmath>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/model/gpt_neox/gpt_neox.hpp"

namespace dstune::gpt_neox {

namespace {

struct Preset {
  const char* name;
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
  std::int64_t inner_size;
  const char* activation = "gelu";
};

constexpr Preset kPresets[] = {
    {"pythia-14m", 50304, 128, 6, 4, 512},
    {"pythia-31m", 50304, 256, 6, 8, 1024},
    {"pythia-70m", 50304, 512, 6, 8, 2048},
    {"pythia-160m", 50304, 768, 12, 12, 3072},
    {"pythia-410m", 50304, 1024, 24, 16, 4096},
    {"pythia-1b", 50304, 2048, 16, 8, 8192},
    {"pythia-1.4b", 50304, 2048, 24, 16, 8192},
    {"pythia-2.8b", 50304, 2560, 32, 32, 10240},
    {"pythia-6.9b", 50432, 4096, 32, 32, 16384},
    {"pythia-12b", 50688, 5120, 36, 40, 20480},
    {"gpt-neox-20b", 50432, 6144, 44, 64, 24576, "gelu_fast"},
};

std::int64_t rotary_dims(const ModelSpec& spec, const NeoxSettings& settings) {
  return static_cast<std::int64_t>(static_cast<double>(spec.head_size()) *
                                   settings.rotary_fraction);
}

}  // namespace

std::string to_own(const NeoxSettings& settings) {
  return json::serialize(json::object{{"hidden_act", settings.activation},
                                      {"rotary_pct", settings.rotary_fraction},
                                      {"rotary_emb_base", settings.rotary_base},
                                      {"use_parallel_residual", settings.parallel_residual},
                                      {"attention_bias", settings.attention_bias},
                                      {"tie_word_embeddings", settings.tied}});
}

NeoxSettings settings_of(const ModelSpec& spec) {
  const json::object own = json::parse(spec.own).as_object();
  return {.activation = json::value_to<std::string>(own.at("hidden_act")),
          .rotary_fraction = own.at("rotary_pct").to_number<double>(),
          .rotary_base = own.at("rotary_emb_base").to_number<double>(),
          .parallel_residual = own.at("use_parallel_residual").as_bool(),
          .attention_bias = own.at("attention_bias").as_bool(),
          .tied = own.at("tie_word_embeddings").as_bool()};
}

std::int64_t rotary_columns(const ModelSpec& spec, const NeoxSettings& settings) {
  const std::int64_t dims = rotary_dims(spec, settings);
  return dims + dims % 2;
}

// The exponents count the fraction's columns, even if RoPE turns one more.
RotaryFrequencies frequencies(const ModelSpec& spec, const NeoxSettings& settings) {
  const auto dims = static_cast<double>(rotary_dims(spec, settings));
  RotaryFrequencies result;
  for (std::int64_t j = 0; j < rotary_columns(spec, settings) / 2; ++j) {
    result.values.push_back(std::pow(settings.rotary_base, -2.0 * static_cast<double>(j) / dims));
  }
  return result;
}

std::vector<ModelSpec> presets() {
  std::vector<ModelSpec> all;
  for (const Preset& entry : kPresets) {
    ModelSpec& spec = all.emplace_back();
    spec.name = entry.name;
    spec.vocab_size = entry.vocab_size;
    spec.max_positions = 2048;
    spec.hidden_size = entry.hidden_size;
    spec.num_layers = entry.num_layers;
    spec.num_heads = entry.num_heads;
    spec.inner_size = entry.inner_size;
    spec.own = to_own({.activation = entry.activation});
  }
  return all;
}

}  // namespace dstune::gpt_neox
