#include "core/model/fine_tuning.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, 3> kBiases{"none", "all", "lora_only"};

json::value list_or_pattern(const std::vector<std::string>& list, const std::string& pattern) {
  return pattern.empty() ? json::value_from(list) : json::value(pattern);
}

void read(const json::value& value, std::vector<std::string>& list, std::string& pattern) {
  if (value.is_string()) {
    pattern = json::value_to<std::string>(value);
  } else {
    list = json::value_to<std::vector<std::string>>(value);
  }
}

LoraSettings lora_from(const json::object& object) {
  LoraSettings lora;
  lora.rank = object.at("r").to_number<std::int64_t>();
  lora.alpha = object.at("lora_alpha").to_number<double>();
  lora.dropout = object.at("lora_dropout").to_number<double>();
  lora.rank_stabilized = object.at("use_rslora").as_bool();
  for (std::size_t i = 0; i < kBiases.size(); ++i) {
    if (object.at("bias").as_string() == kBiases.at(i)) {
      lora.bias = static_cast<LoraSettings::Bias>(i);
    }
  }
  read(object.at("target_modules"), lora.targets, lora.target_pattern);
  read(object.at("exclude_modules"), lora.excluded, lora.excluded_pattern);
  lora.layers = json::value_to<std::vector<std::int64_t>>(object.at("layers_to_transform"));
  lora.saved = json::value_to<std::vector<std::string>>(object.at("modules_to_save"));
  return lora;
}

}  // namespace

double LoraSettings::scaling() const {
  const auto r = static_cast<double>(rank);
  return alpha / (rank_stabilized ? std::sqrt(r) : r);
}

void write(const FineTuning& tuning, json::object& model) {
  if (!tuning.trainable.empty()) model["trainable"] = json::value_from(tuning.trainable);
  if (!tuning.lora) return;
  const LoraSettings& lora = *tuning.lora;
  model["lora"] = {{"r", lora.rank},
                   {"lora_alpha", lora.alpha},
                   {"lora_dropout", lora.dropout},
                   {"use_rslora", lora.rank_stabilized},
                   {"bias", kBiases.at(static_cast<std::size_t>(lora.bias))},
                   {"target_modules", list_or_pattern(lora.targets, lora.target_pattern)},
                   {"exclude_modules", list_or_pattern(lora.excluded, lora.excluded_pattern)},
                   {"layers_to_transform", json::value_from(lora.layers)},
                   {"modules_to_save", json::value_from(lora.saved)}};
}

FineTuning fine_tuning_from(const json::object& model) {
  FineTuning tuning;
  if (const auto* list = model.if_contains("trainable")) {
    tuning.trainable = json::value_to<std::vector<std::string>>(*list);
  }
  if (const auto* lora = model.if_contains("lora")) tuning.lora = lora_from(lora->as_object());
  return tuning;
}

}  // namespace dstune
