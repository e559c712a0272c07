#include "tests/support/family_fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/text.hpp"
#include "core/config/model/read_fine_tuning.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/problems.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::test {

namespace {

// value_of() of the script.
float value_of(std::size_t tensor, std::size_t element) {
  auto x = static_cast<std::uint32_t>((tensor + 1) * 0x9E3779B1U + element * 0x85EBCA77U);
  x ^= x >> 15U;
  x *= 0x2C1B3C6DU;
  x ^= x >> 12U;
  return (static_cast<float>(x & 0xFFFFU) / 65536.0F - 0.5F) / 2.0F;
}

constexpr KeyRule kFineTuningRules[] = {rules::any("trainable"), rules::any("lora")};
constexpr Section kFineTuning{.rules = kFineTuningRules};

FamilyFixture::Parameter parameter_of(const json::value& value, std::size_t index) {
  FamilyFixture::Parameter parameter;
  parameter.name = json::value_to<std::string>(value.at("name"));
  parameter.shape = json::value_to<std::vector<std::int64_t>>(value.at("shape"));
  for (const auto& number : value.at("gradient").as_array()) {
    parameter.gradient.push_back(number.to_number<float>());
  }
  const auto center = value.at("center").to_number<float>();
  const std::int64_t elements = std::accumulate(parameter.shape.begin(), parameter.shape.end(),
                                                std::int64_t{1}, std::multiplies<>());
  for (std::size_t element = 0; element < static_cast<std::size_t>(elements); ++element) {
    parameter.values.push_back(center + value_of(index, element));
  }
  return parameter;
}

FamilyFixture::Saved saved_of(const json::key_value_pair& entry) {
  return {.attention = entry.key(),
          .layers = json::value_to<std::vector<Bytes>>(entry.value().at("layers")),
          .total = entry.value().at("total").to_number<Bytes>()};
}

DType dtype_of(std::string_view name) {
  if (name == "bfloat16") return DType::bf16;
  return name == "float16" ? DType::fp16 : DType::fp32;
}

FamilyFixture::SavedOnCuda saved_on_cuda_of(const json::value& row) {
  return {.attention = json::value_to<std::string>(row.at("attention")),
          .dtype = dtype_of(row.at("dtype").as_string()),
          .dropout = row.at("dropout").to_number<double>(),
          .layers = json::value_to<std::vector<Bytes>>(row.at("layers"))};
}

std::vector<std::string> texts(const json::value& list) {
  return json::value_to<std::vector<std::string>>(list);
}

}  // namespace

std::vector<std::string> family_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test_data("families"))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

FamilyFixture read_family_fixture(const std::string& name) {
  std::ifstream file(test_data(concat("families/", name, ".json")));
  const json::value root = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  FamilyFixture fixture;
  fixture.name = name;
  fixture.config = root.at("config").as_object();
  if (const auto* task = root.as_object().if_contains("task")) {
    fixture.task = task_from(task->as_string());
  }
  for (const auto* key : {"trainable", "lora"}) {
    if (const auto* value = root.as_object().if_contains(key)) fixture.fine_tuning[key] = *value;
  }
  fixture.micro_batch = root.at("micro_batch").as_int64();
  fixture.sequence_length = root.at("sequence_length").as_int64();
  if (const auto* length = root.as_object().if_contains("target_sequence_length")) {
    fixture.target_length = length->as_int64();
  }
  fixture.tokens = json::value_to<std::vector<std::int64_t>>(root.at("tokens"));
  fixture.loss = root.at("loss").as_double();
  for (const auto& parameter : root.at("parameters").as_array()) {
    fixture.parameters.push_back(parameter_of(parameter, fixture.parameters.size()));
  }
  for (const auto& module : root.at("modules").as_array()) {
    const auto both = texts(module);
    fixture.modules.emplace_back(both.at(0), both.at(1));
  }
  fixture.calls = texts(root.at("calls"));
  fixture.arrival = texts(root.at("arrival"));
  for (const auto& entry : root.at("saved").as_object()) fixture.saved.push_back(saved_of(entry));
  fixture.dropout_keys = texts(root.at("dropout_keys"));
  for (const auto& row : root.at("on_cuda").as_array()) {
    fixture.on_cuda.push_back(saved_on_cuda_of(row));
  }
  return fixture;
}

ModelSpec model_of(const FamilyFixture& fixture, double dropout) {
  const std::string type = json::value_to<std::string>(fixture.config.at("model_type"));
  const Family* family = find_family(type);
  if (family == nullptr) throw std::invalid_argument(concat("no family of models: ", type));
  Problems problems(fixture.name);
  std::vector<std::string> warnings;
  json::object config = fixture.config;
  for (const auto& key : fixture.dropout_keys) config[key] = dropout;
  auto spec = family->read(config, "", problems, warnings);
  spec->family = type;
  spec->name = fixture.name;
  spec->task = fixture.task;
  spec->target_length = fixture.target_length;
  json::object tuning = fixture.fine_tuning;
  if (tuning.contains("lora")) tuning["lora"].as_object()["lora_dropout"] = dropout;
  read_fine_tuning({tuning, kFineTuning, "", problems}, *spec, problems);
  problems.throw_if_any();
  return *spec;
}

FamilyFixture without_router_loss(FamilyFixture fixture) {
  if (fixture.config.contains("output_router_logits")) {
    fixture.config["output_router_logits"] = false;
  }
  return fixture;
}

}  // namespace dstune::test
