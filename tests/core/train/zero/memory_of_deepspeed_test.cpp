// The peak of a dry run beside the real DeepSpeed's: tests/data/deepspeed_memory.json, written by
// scripts/compare_memory_with_deepspeed.py, and deepspeed_gpu_memory.json, by
// scripts/measure_gpu_memory.py on a GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::memory_of_deepspeed_test {
namespace {

constexpr double kTolerance = 1e-3;

struct Fixture {
  json::object root;

  explicit Fixture(const char* name = "deepspeed_memory.json")
      : root(parse_json(read_text_file(test::test_data(name))).as_object()) {}

  const json::array& rows() const { return root.at("rows").as_array(); }
  int ranks_of(const json::object& row) const {
    return (row.contains("ranks") ? row : root).at("ranks").to_number<int>();
  }
};

ModelSpec read_model(const json::object& config) {
  Problems problems("deepspeed_memory.json");
  std::vector<std::string> warnings;
  return read_model_object(config, "model", "", problems, warnings).value();
}

Experiment experiment_of(const json::object& row, const Fixture& fixture) {
  Experiment experiment;
  experiment.name = std::string_view(row.at("name").as_string());
  experiment.ranks = fixture.ranks_of(row);
  json::object config = row.at("ds_config").as_object();
  config["train_batch_size"] =
      config.at("train_micro_batch_size_per_gpu").to_number<std::int64_t>() *
      config.at("gradient_accumulation_steps").to_number<std::int64_t>() * experiment.ranks;
  if (row.contains("checkpointing") && row.at("checkpointing").as_bool()) {
    config["dstune"] = {{"activation_checkpointing", true}};
  }
  experiment.ds_config = std::move(config);
  RunSettings& settings = experiment.settings;
  settings.model =
      read_model(fixture.root.at("models").at(row.at("model").as_string()).as_object());
  settings.sequence_length = row.at("sequence_length").to_number<std::int64_t>();
  settings.attention =
      attention_kind_from(std::string_view(row.at("attention").as_string())).value();
  settings.loss.keep_logits = row.at("keep_logits").as_bool();
  settings.memory_limit = Bytes{1} << 40U;
  return experiment;
}

Bytes peak_of(const Experiment& experiment, int rank) {
  const Outcome outcome = dry_run(experiment, rank).outcome;
  const auto* const measured = std::get_if<Measured>(&outcome);
  if (measured == nullptr) throw std::runtime_error(concat(experiment.name, " does not run"));
  return measured->peak_memory.allocated;
}

/// Of the rank with the largest.
double peak_of(const Experiment& experiment) {
  Bytes most = 0;
  for (int rank = 0; rank < experiment.ranks; ++rank) {
    most = std::max(most, peak_of(experiment, rank));
  }
  return static_cast<double>(most);
}

TEST(MemoryOfDeepSpeed, IsTheDryStepsWithinATenthOfAPercent) {
  const Fixture fixture;
  for (const json::value& value : fixture.rows()) {
    const json::object& row = value.as_object();
    const double real = row.at("deepspeed_bytes").to_number<double>();

    const double ours = peak_of(experiment_of(row, fixture));

    EXPECT_LT(std::abs(ours - real) / real, kTolerance)
        << row.at("name").as_string() << ": " << real << " bytes in DeepSpeed, " << ours << " here";
  }
}

// Rank 0 was measured. Losses, scales and counters are all that is left between the two.
TEST(MemoryOfDeepSpeed, IsTheDryStepsOnAGpuButForAKibibyte) {
  const Fixture fixture("deepspeed_gpu_memory.json");
  EXPECT_GE(fixture.rows().size(), 10U);
  for (const json::value& value : fixture.rows()) {
    const json::object& row = value.as_object();
    const double real = row.at("deepspeed_bytes").to_number<double>();
    Experiment experiment = experiment_of(row, fixture);
    experiment.settings.product_workspace = {Bytes{32} << 20U, kBiasWorkspace};  // of Hopper

    const auto ours = static_cast<double>(peak_of(experiment, 0));

    EXPECT_NEAR(ours, real, 1024) << row.at("name").as_string();
  }
}

// Where the peak is decides what a row checks.
TEST(MemoryOfDeepSpeed, IsKnownOfEveryStageAndOfPeaksInEveryPartOfTheStep) {
  const Fixture fixture;
  std::set<std::string_view> phases;
  std::set<std::int64_t> stages;
  for (const json::value& value : fixture.rows()) {
    phases.insert(value.at("dstune_phase").as_string());
    const json::value& zero = value.at("ds_config").at("zero_optimization");
    stages.insert(zero.at("stage").to_number<std::int64_t>());
  }
  EXPECT_GE(fixture.rows().size(), 20U);
  EXPECT_EQ(stages, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(phases, (std::set<std::string_view>{"backward", "forward", "reduction", "update"}));
}

}  // namespace
}  // namespace dstune::memory_of_deepspeed_test
