#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/model/opt/opt.hpp"

namespace dstune::opt {

namespace {

struct Preset {
  const char* name;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
};

// The feed-forward layers are four times as wide; opt-350m alone has the exceptions below.
constexpr Preset kPresets[] = {
    {"opt-125m", 768, 12, 12},  {"opt-350m", 1024, 24, 16}, {"opt-1.3b", 2048, 24, 32},
    {"opt-2.7b", 2560, 32, 32}, {"opt-6.7b", 4096, 32, 32}, {"opt-13b", 5120, 40, 40},
    {"opt-30b", 7168, 48, 56},  {"opt-66b", 9216, 64, 72},
};

OptSettings settings_of(const Preset& entry) {
  if (std::string_view(entry.name) == "opt-350m") {
    return {.embedding_size = 512, .norm_before = false};
  }
  return {.embedding_size = entry.hidden_size};
}

}  // namespace

std::string to_own(const OptSettings& settings) {
  return json::serialize(json::object{{"activation_function", settings.activation},
                                      {"word_embed_proj_dim", settings.embedding_size},
                                      {"do_layer_norm_before", settings.norm_before},
                                      {"_remove_final_layer_norm", settings.removes_final_norm},
                                      {"enable_bias", settings.has_bias},
                                      {"layer_norm_elementwise_affine", settings.norm_parameters},
                                      {"tie_word_embeddings", settings.tied}});
}

OptSettings settings_of(const ModelSpec& spec) {
  const json::object own = json::parse(spec.own).as_object();
  return {.activation = json::value_to<std::string>(own.at("activation_function")),
          .embedding_size = own.at("word_embed_proj_dim").to_number<std::int64_t>(),
          .norm_before = own.at("do_layer_norm_before").as_bool(),
          .removes_final_norm = own.at("_remove_final_layer_norm").as_bool(),
          .has_bias = own.at("enable_bias").as_bool(),
          .norm_parameters = own.at("layer_norm_elementwise_affine").as_bool(),
          .tied = own.at("tie_word_embeddings").as_bool()};
}

std::vector<ModelSpec> presets() {
  std::vector<ModelSpec> all;
  for (const Preset& entry : kPresets) {
    ModelSpec& spec = all.emplace_back();
    spec.name = entry.name;
    spec.vocab_size = 50272;
    spec.max_positions = 2048;
    spec.hidden_size = entry.hidden_size;
    spec.num_layers = entry.num_layers;
    spec.num_heads = entry.num_heads;
    spec.inner_size = 4 * entry.hidden_size;
    spec.residual_dropout = 0.1;
    spec.own = to_own(settings_of(entry));
  }
  return all;
}

}  // namespace dstune::opt
