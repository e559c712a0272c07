// What LoRA trains of published models against PEFT's own count: tests/data/lora.json, written by
// scripts/make_lora_fixture.py.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/config/model/read_fine_tuning.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::lora_totals_test {
namespace {

constexpr KeyRule kRules[] = {rules::any("trainable"), rules::any("lora")};
constexpr Section kSection{.rules = kRules};

ModelSpec read(const json::object& row) {
  Problems problems(std::string(row.at("name").as_string()));
  std::vector<std::string> warnings;
  auto spec = read_model_object(row.at("config").as_object(), "m", "", problems, warnings);
  problems.throw_if_any();
  if (row.at("auto_class").as_string() == "AutoModelForSequenceClassification") {
    spec->task = Task::sequence_classification;
  }
  const json::object section{{"lora", row.at("lora")}};
  read_fine_tuning({section, kSection, "", problems}, *spec, problems);
  problems.throw_if_any();
  return *spec;
}

TEST(LoraTotals, AreWhatPeftTrainsOfPublishedModels) {
  std::ifstream file(test::test_data("lora.json"));
  const json::value root = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  for (const auto& value : root.at("models").as_array()) {
    const json::object& row = value.as_object();
    const ModelParameters parameters = make_model_parameters(read(row));

    SCOPED_TRACE(json::serialize(row.at("name")) + json::serialize(row.at("lora")));
    EXPECT_EQ(parameters.trainable_total(), row.at("trainable").as_int64());
    EXPECT_EQ(parameters.total(), row.at("parameters").as_int64());
    EXPECT_EQ(parameters.tensors.size(), row.at("tensors").to_number<std::size_t>());
    EXPECT_EQ(std::count_if(parameters.tensors.begin(), parameters.tensors.end(),
                            [](const ParameterSpec& tensor) { return tensor.trainable; }),
              row.at("trainable_tensors").as_int64());
  }
}

}  // namespace
}  // namespace dstune::lora_totals_test
