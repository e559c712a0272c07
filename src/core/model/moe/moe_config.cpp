#include <algorithm>
#include <string>

#include "core/base/text.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

constexpr std::int64_t kMixtralExperts = 8;
constexpr std::int64_t kMixtralChosen = 2;

struct ExpertDefaults {
  std::int64_t count;
  std::int64_t chosen;
  std::int64_t inner_size;
};

ExpertDefaults defaults_of(Kin kin, const ModelSpec& spec) {
  if (kin == Kin::qwen2_moe) return {60, 4, 1408};
  if (kin == Kin::qwen3_moe) return {128, 8, 768};
  return {kMixtralExperts, kMixtralChosen, spec.inner_size};
}

bool is_listed(const json::array& layers, std::int64_t layer) {
  return std::any_of(layers.begin(), layers.end(), [=](const json::value& value) {
    return value.is_number() && value.to_number<double>() == static_cast<double>(layer);
  });
}

json::array sparse_layers(const Values& values, std::int64_t layers) {
  const std::int64_t step = values.get<std::int64_t>("decoder_sparse_step", 1);
  const auto* const given = values.find("mlp_only_layers");
  const json::array mlp_only = given == nullptr ? json::array() : given->get_array();
  json::array sparse;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if ((layer + 1) % step == 0 && !is_listed(mlp_only, layer)) sparse.emplace_back(layer);
  }
  return sparse;
}

void check_layers(const Values& values, std::string_view pointer, Problems& problems) {
  const auto* const given = values.find("mlp_only_layers");
  if (given == nullptr) return;
  for (const json::value& layer : given->get_array()) {
    if (layer.is_int64() || layer.is_uint64()) continue;
    problems.add(child(pointer, "mlp_only_layers"),
                 concat("has ", describe(layer), "; accepted: numbers of layers, from 0"));
    return;
  }
}

void check_activation(std::string_view name, std::string_view pointer, Problems& problems) {
  const bool is_chain =
      name == "gelu_new" || name == "gelu_accurate" || name == "gelu_fast" || name == "quick_gelu";
  if (!is_chain) return;
  problems.add(child(pointer, "hidden_act"),
               concat("is ", name, "; experts are modelled with functions of one kernel: gelu, ",
                      "gelu_pytorch_tanh, relu, sigmoid, silu, swish, tanh"));
}

}  // namespace

void read_experts(const Values& values, const ModelSpec& spec, const Description& kin,
                  std::string_view pointer, Problems& problems, json::object& own) {
  if (!kin.has_experts) return;
  const ExpertDefaults defaults = defaults_of(kin.kin, spec);
  const bool is_mixtral = kin.kin == Kin::mixtral;
  const std::int64_t count =
      values.get(is_mixtral ? "num_local_experts" : "num_experts", defaults.count);
  const std::int64_t chosen = values.get("num_experts_per_tok", defaults.chosen);
  check_layers(values, pointer, problems);
  check_activation(own.at("hidden_act").as_string(), pointer, problems);
  if (count == 0) return;
  if (chosen > count) {
    problems.add(child(pointer, "num_experts_per_tok"),
                 concat("is ", chosen, "; accepted: at most the number of experts, ", count));
  }
  json::object experts{
      {"count", count},
      {"chosen", chosen},
      {"inner_size",
       is_mixtral ? spec.inner_size : values.get("moe_intermediate_size", defaults.inner_size)},
      {"normalised", is_mixtral || values.get("norm_topk_prob", false)},
      {"layers", sparse_layers(values, spec.num_layers)}};
  if (kin.kin == Kin::qwen2_moe) {
    constexpr std::int64_t kShared = 5632;
    experts["shared_size"] = values.get("shared_expert_intermediate_size", kShared);
  }
  if (values.get("output_router_logits", false)) {
    constexpr double kCoefficient = 0.001;
    experts["balance"] = values.get("router_aux_loss_coef", kCoefficient);
  }
  own["experts"] = std::move(experts);
}

ExpertSettings experts_of(const json::object& own, const Description& kin, std::int64_t layers) {
  ExpertSettings settings;
  const auto* const found = own.if_contains("experts");
  settings.in_layer.assign(static_cast<std::size_t>(layers), false);
  if (found == nullptr) return settings;
  const json::object& experts = found->as_object();
  const auto integer = [&](const char* key) {
    const auto* const value = experts.if_contains(key);
    return value == nullptr ? 0 : value->to_number<std::int64_t>();
  };
  settings.count = integer("count");
  settings.chosen = integer("chosen");
  settings.inner_size = integer("inner_size");
  settings.shared_size = integer("shared_size");
  settings.normalised = experts.at("normalised").as_bool();
  settings.weights_in_fp32 = kin.kin == Kin::mixtral;
  settings.experts_first = kin.kin == Kin::qwen3_moe;
  if (const auto* balance = experts.if_contains("balance")) {
    settings.balance = balance->to_number<double>();
  }
  for (const json::value& layer : experts.at("layers").as_array()) {
    settings.in_layer[layer.to_number<std::size_t>()] = true;
  }
  return settings;
}

}  // namespace dstune::llama
