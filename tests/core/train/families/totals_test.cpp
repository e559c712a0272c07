// The parameters of published models against Hugging Face transformers' own count:
// tests/data/totals/*.json, written by scripts/make_totals_fixture.py.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value_to.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::totals_test {
namespace {

struct Published {
  std::string name;
  std::int64_t parameters = 0;
  std::size_t tensors = 0;
  std::optional<Task> task;  ///< the family's first if there is none
  json::object config;
};

std::optional<Task> task_of(const json::object& row) {
  const auto* auto_class = row.if_contains("auto_class");
  if (auto_class == nullptr) return std::nullopt;
  const std::string_view name = auto_class->as_string();
  if (name == "AutoModelForMaskedLM") return Task::masked_lm;
  if (name == "AutoModelForSequenceClassification") return Task::sequence_classification;
  if (name == "AutoModelForSeq2SeqLM") return Task::seq2seq_lm;
  throw std::invalid_argument(std::string(name));
}

std::vector<Published> published_models() {
  std::vector<Published> all;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("totals"))) {
    std::ifstream file(entry.path());
    const json::value root = parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
    for (const auto& row : root.at("models").as_array()) {
      all.push_back({json::value_to<std::string>(row.at("name")), row.at("parameters").as_int64(),
                     row.at("tensors").to_number<std::size_t>(), task_of(row.as_object()),
                     row.at("config").as_object()});
    }
  }
  return all;
}

std::string without_owner(const std::string& name) { return name.substr(name.find('/') + 1); }

ModelSpec read(const Published& model) {
  Problems problems(model.name);
  std::vector<std::string> warnings;
  auto spec = read_model_object(model.config, without_owner(model.name), "", problems, warnings);
  problems.throw_if_any();
  EXPECT_EQ(warnings, std::vector<std::string>{}) << model.name;
  if (model.task) spec->task = *model.task;
  return *spec;
}

TEST(Totals, OfPublishedModelsAreHuggingFaces) {
  for (const Published& model : published_models()) {
    const ModelParameters parameters = make_model_parameters(read(model));

    EXPECT_EQ(parameters.total(), model.parameters) << model.name;
    EXPECT_EQ(parameters.tensors.size(), model.tensors) << model.name;
  }
}

TEST(Totals, PresetsAreThePublishedModelsOfTheirNames) {
  const auto published = published_models();
  for (const Family& family : families()) {
    for (ModelSpec preset : family.presets()) {
      preset.family = family.model_type;
      preset.task = family.tasks.front();
      std::optional<ModelSpec> same;
      for (const Published& model : published) {
        if (without_owner(model.name) == preset.name) same = read(model);
      }
      EXPECT_EQ(same, preset) << preset.name;
    }
  }
}

}  // namespace
}  // namespace dstune::totals_test
