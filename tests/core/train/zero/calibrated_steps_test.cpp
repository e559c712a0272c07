// The host's events of the steps that a calibration measures, beside what it counted of them in the
// real DeepSpeed: tests/data/calibrated_steps.json.
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::calibrated_steps_test {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

Experiment experiment_of(const json::object& row, const json::object& fixture) {
  json::object config = fixture.at("model").as_object();
  config["n_layer"] = row.at("layers");
  Problems problems("calibrated_steps.json");
  std::vector<std::string> warnings;
  auto model = read_model_object(config, "model", "", problems, warnings);
  problems.throw_if_any();
  const json::value& micro_steps = row.at("micro_steps");
  Experiment experiment;
  experiment.name = "calibrated";
  experiment.ds_config =
      json::object{{"train_batch_size", micro_steps},
                   {"train_micro_batch_size_per_gpu", 1},
                   {"gradient_accumulation_steps", micro_steps},
                   {"gradient_clipping", 1.0},
                   {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}},
                   {"zero_optimization", row.at("zero_optimization")}};
  experiment.settings.model = *model;
  experiment.settings.sequence_length = fixture.at("sequence_length").to_number<std::int64_t>();
  experiment.settings.memory_limit = Bytes{1} << 40U;
  return experiment;
}

/// Of DeepSpeed's events but for collectives, of which one rank has others.
Counts counts_of(const Outcome& outcome) {
  Counts counts;
  for (const HostLine& line : std::get<Measured>(outcome).ledger.host()) {
    const bool is_counted = !is_of_pytorch(line.event) && line.event != HostEvent::collective;
    if (is_counted && line.calls > 0) counts[std::string(name_of(line.event))] = line.calls;
  }
  return counts;
}

TEST(CalibratedSteps, HaveTheEventsThatTheCalibrationCountsInDeepSpeed) {
  const json::object fixture =
      parse_json(read_text_file(test::test_data("calibrated_steps.json"))).as_object();
  for (const json::value& value : fixture.at("cases").as_array()) {
    const json::object& row = value.as_object();
    Counts deepspeeds;
    for (const auto& [event, count] : row.at("counts").as_object()) {
      const auto calls = count.to_number<std::uint64_t>();
      if (event != "collective" && calls > 0) deepspeeds[std::string(event)] = calls;
    }

    EXPECT_EQ(counts_of(dry_run(experiment_of(row, fixture), 0).outcome), deepspeeds)
        << to_json_text(row, 0);
  }
  EXPECT_EQ(fixture.at("cases").as_array().size(), 24U);
}

}  // namespace
}  // namespace dstune::calibrated_steps_test
