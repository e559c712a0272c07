// Activation checkpointing beside torch and DeepSpeed: tests/data/checkpointing.json, written by
// scripts/make_checkpointing_fixture.py.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/train/families/families.hpp"
#include "tests/core/train/families/checkpointed_run.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::checkpointing_of_torch_test {
namespace {

using test::CheckpointedRun;
using test::FamilyFixture;
using test::kRoom;
using test::layers_of;
using test::Way;

struct Row {
  std::string name;
  Way way;
  std::vector<std::string> events;
};

json::array rows_of(const char* key) {
  return json::parse(read_text_file(test::test_data("checkpointing.json"))).at(key).as_array();
}

json::value form_of(const json::string& way) {
  if (way == "true" || way == "false") return way == "true";
  return way;
}

// "F3": "fetch transformer.h.0", where that is module 3.
std::string event_of(const std::string& text, const ModelParameters& parameters) {
  const auto index = static_cast<std::size_t>(std::stoul(text.substr(1)));
  if (text[0] == 'G') return "gradient " + parameters.tensors.at(index).name;
  return concat(text[0] == 'F' ? "fetch " : "release ", parameters.modules.at(index).name);
}

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (const auto& value : rows_of("events")) {
    const json::object& row = value.as_object();
    Row result{.name = std::string(row.at("case").as_string()),
               .way = {.checkpointing = form_of(row.at("way").as_string()),
                       .dropout = row.at("dropout").to_number<double>(),
                       .linear = LinearLayers::memory_efficient},
               .events = {}};
    const auto parameters =
        make_model_parameters(test::model_of(test::read_family_fixture(result.name)));
    for (const auto& event : split(std::string(row.at("events").as_string()), ' ')) {
      result.events.push_back(event_of(event, parameters));
    }
    rows.push_back(std::move(result));
  }
  return rows;
}

TEST(CheckpointingInStage3, RunsHooksAgainInDeepSpeedsOrder) {
  for (const Row& row : rows()) {
    DryDevice device(kRoom);
    CheckpointedRun run(test::read_family_fixture(row.name), device, row.way);
    run.forward();
    run.engine.events.clear();

    run.backward();

    EXPECT_EQ(join(run.engine.events, "\n"), join(row.events, "\n"))
        << row.name << ", " << json::serialize(row.way.checkpointing) << ", dropout "
        << row.way.dropout;
  }
}

struct LayersMemory {
  Bytes kept = 0;
  Bytes peak = 0;
};

// Ticks come behind each layer, forward and then back.
LayersMemory measure(const FamilyFixture& fixture, const Way& way) {
  DryDevice device(kRoom);
  CheckpointedRun run(fixture, device, way);
  MemoryBudget& memory = device.memory();
  const auto layers = layers_of(run.engine.parameters());
  LayersMemory result;
  Bytes before = 0;
  std::size_t ticks = 0;
  device.on_tick([&] {
    ++ticks;
    if (ticks == layers.size()) result.kept = memory.in_use() - before;
    if (ticks == 2 * layers.size()) result.peak = memory.peak().allocated - before;
  });
  run.engine.on_fetch = [&](std::size_t module) {
    const bool begins = ticks == 0 && module == layers.front();
    const bool turns = ticks == layers.size() && module == layers.back();
    if (begins || turns) before = memory.in_use();
    if (turns) memory.reset_peak();
  };
  run.forward();
  run.backward();
  return result;
}

// What docs/checkpointing.md and docs/models.md say: a bias's gradient, two tensors of Gemma's
// norms in fp32, and where a norm is last the gradient that a reentrant checkpoint holds.
Bytes less_than_torch(const FamilyFixture& fixture, const Way& way, const LayersMemory& torchs) {
  constexpr double kBiases = 0.015;
  const auto output = static_cast<Bytes>(fixture.micro_batch * fixture.sequence_length *
                                         test::model_of(fixture).hidden_size) *
                      size_of(DType::fp32);
  auto less = static_cast<Bytes>(kBiases * static_cast<double>(torchs.kept + torchs.peak));
  const bool is_gemma = fixture.name == "gemma3_text";
  const bool ends_in_norm =
      is_gemma || fixture.name == "opt_post_norm" || fixture.name.find("bert") != std::string::npos;
  if (is_gemma) less += 2 * output;
  if (ends_in_norm && activation_checkpointing_from_json(way.checkpointing).reentrant) {
    less += output;
  }
  return less;
}

TEST(CheckpointingMemory, IsTorchs) {
  for (const auto& value : rows_of("memory")) {
    const json::object& row = value.as_object();
    const std::string name(row.at("case").as_string());
    const Way way{
        .checkpointing = form_of(row.at("way").as_string()),
        .attention =
            attention_kind_from(std::string_view(row.at("attention").as_string())).value()};
    const LayersMemory torchs{row.at("kept").to_number<Bytes>(), row.at("peak").to_number<Bytes>()};

    const FamilyFixture fixture = test::read_family_fixture(name);
    const LayersMemory ours = measure(fixture, way);

    EXPECT_EQ(ours.kept, torchs.kept) << json::serialize(row);
    EXPECT_LE(ours.peak, torchs.peak) << json::serialize(row);
    EXPECT_GE(ours.peak + less_than_torch(fixture, way, torchs), torchs.peak)
        << json::serialize(row);
  }
}

}  // namespace
}  // namespace dstune::checkpointing_of_torch_test
