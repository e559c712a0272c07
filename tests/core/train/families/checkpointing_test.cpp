// Activation checkpointing: every family computes the same with it, as transformers, torch and
// DeepSpeed run it again.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/device/dry_device.hpp"
#include "core/device/scalar.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/train/families/families.hpp"
#include "core/train/layers/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/test_data.hpp"

namespace dstune {
namespace {

using test::FamilyFixture;

constexpr Bytes kRoom = Bytes{1} << 30U;

/// How a fixture's micro-batch runs.
struct Way {
  json::value checkpointing = false;
  double dropout = 0;
  DType dtype = DType::fp32;
  AttentionKind attention = AttentionKind::sdpa;
  LinearLayers linear = LinearLayers::torch;
};

MicroBatch micro_batch_of(const FamilyFixture& fixture, const Way& way) {
  return {.size = fixture.micro_batch,
          .sequence_length = fixture.sequence_length,
          .dtype = way.dtype,
          .linear = way.linear,
          .attention = way.attention,
          .checkpointing = activation_checkpointing_from_json(way.checkpointing)};
}

class CheckpointedRun {
 public:
  CheckpointedRun(const FamilyFixture& fixture, Device& device, const Way& way)
      : spec_(test::model_of(fixture, way.dropout)),
        engine(spec_, way.dtype, device),
        model_(family_of(spec_).make_model(spec_, engine.parameters(), micro_batch_of(fixture, way),
                                           device)),
        tokens_(device, MemoryCategory::temporaries, fixture.tokens.size() * 8),
        loss_(device) {
    loss_.set_zero();
    if (!device.computes()) return;
    std::memcpy(tokens_.data(), fixture.tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      engine.write_parameter(i, fixture.parameters[i].values);
    }
  }

  void forward() {
    constexpr std::uint64_t kSeed = 5;
    model_->forward(engine, tokens_.tensor(DType::int64), kSeed, loss_.tensor());
  }
  void backward() { model_->backward(engine, 1); }

  std::vector<std::vector<float>> gradients() {
    forward();
    backward();
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < engine.parameters().tensors.size(); ++i) {
      all.push_back(engine.gradient(i));
    }
    return all;
  }

 private:
  ModelSpec spec_;

 public:
  test::RecordingEngine engine;

 private:
  std::unique_ptr<Model> model_;
  Buffer tokens_;
  Scalar loss_;
};

class Checkpointing : public testing::TestWithParam<std::string> {
 protected:
  FamilyFixture fixture() const { return test::read_family_fixture(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Families, Checkpointing, testing::ValuesIn(test::family_fixtures()),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(Checkpointing, GradientsAreThoseWithoutItBitForBit) {
  const FamilyFixture fixture = this->fixture();
  for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
    Way way{.dropout = 0.1, .attention = attention};
    cpu::CpuDevice device(kRoom);
    const auto expected = CheckpointedRun(fixture, device, way).gradients();
    for (const char* text : {"true", R"("every_2_layers")", R"("every_1_layers_reentrant")",
                             R"("groups_of_2_layers")", R"("groups_of_3_layers_by_deepspeed")"}) {
      way.checkpointing = json::parse(text);
      EXPECT_EQ(CheckpointedRun(fixture, device, way).gradients(), expected)
          << text << ", " << name_of(attention);
    }
  }
}

TEST_P(Checkpointing, NothingStaysAllocated) {
  const FamilyFixture fixture = this->fixture();
  for (const char* text : {"true", R"("groups_of_2_layers_reentrant")"}) {
    DryDevice device(kRoom);
    CheckpointedRun run(fixture, device,
                        {.checkpointing = json::parse(text),
                         .dropout = 0.1,
                         .dtype = DType::bf16,
                         .attention = AttentionKind::eager});
    const MemoryUse before = device.memory().use();
    run.forward();

    run.backward();

    EXPECT_EQ(device.memory().use(), before) << text;
  }
}

// Modules whose name ends with its only number: "transformer.h.1".
std::vector<std::size_t> layers_of(const ModelParameters& parameters) {
  constexpr const char* kDigits = "0123456789";
  std::vector<std::size_t> layers;
  for (std::size_t module = 0; module < parameters.modules.size(); ++module) {
    const std::string& name = parameters.modules[module].name;
    const std::size_t number = name.find_first_of(kDigits);
    const bool has_number = number != std::string::npos;
    if (has_number && name.find_first_not_of(kDigits, number) == std::string::npos) {
      layers.push_back(module);
    }
  }
  return layers;
}

// Or anything before it: backward comes to its end.
bool is_trained(const ModelParameters& parameters, std::size_t layer) {
  const std::size_t last = parameters.tensors_within(layer).back();
  return std::any_of(parameters.tensors.begin(),
                     parameters.tensors.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                     [](const ParameterSpec& tensor) { return tensor.trainable; });
}

// What routers say, and whom they choose, is kept for their own loss.
Bytes kept_for_router_loss(const FamilyFixture& fixture, const ModelParameters& parameters,
                           std::size_t layer, DType dtype) {
  const auto* const switched_on = fixture.config.if_contains("output_router_logits");
  if (switched_on == nullptr || *switched_on != true) return 0;
  const auto rows = static_cast<Bytes>(fixture.micro_batch * fixture.sequence_length);
  for (std::size_t module = layer; module < parameters.end_of(layer); ++module) {
    const ModuleSpec& router = parameters.modules[module];
    if (router.class_name.find("TopKRouter") == std::string::npos) continue;
    const auto experts = static_cast<Bytes>(parameters.tensors[router.parameters[0]].shape[0]);
    const auto chosen = fixture.config.at("num_experts_per_tok").to_number<Bytes>();
    return rows * (experts * size_of(dtype) + chosen * size_of(DType::int64));
  }
  return 0;
}

// Of a second stack's first layer what is kept is not known.
bool follows(const ModelParameters& parameters, std::size_t before, std::size_t layer) {
  const auto stem = [&](std::size_t module) {
    const std::string& name = parameters.modules[module].name;
    return name.substr(0, name.find_last_of('.'));
  };
  return stem(before) == stem(layer);
}

// At a tick a layer's output stands for its input.
TEST_P(Checkpointing, LayersKeepTheirInputAlone) {
  const FamilyFixture fixture = this->fixture();
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    DryDevice device(kRoom);
    CheckpointedRun run(fixture, device, {.checkpointing = true, .dropout = 0.1, .dtype = dtype});
    std::vector<Bytes> at_ticks;
    device.on_tick(
        [&] { at_ticks.push_back(device.memory().use().at(MemoryCategory::activations)); });

    run.forward();

    const auto hidden = static_cast<Bytes>(test::model_of(fixture).hidden_size);
    const ModelParameters& parameters = run.engine.parameters();
    const auto layers = layers_of(parameters);
    std::int64_t length = fixture.sequence_length;
    for (std::size_t layer = 1; layer < at_ticks.size(); ++layer) {
      if (!follows(parameters, layers.at(layer - 1), layers.at(layer))) {
        length = fixture.target_length;
        continue;
      }
      const bool keeps = is_trained(parameters, layers.at(layer));
      const Bytes input =
          static_cast<Bytes>(fixture.micro_batch * length) * hidden * size_of(dtype);
      EXPECT_EQ(
          at_ticks[layer] - at_ticks[layer - 1],
          (keeps ? input : 0) + kept_for_router_loss(fixture, parameters, layers.at(layer), dtype))
          << layer;
    }
  }
}

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
    if (ticks == 2 * layers.size()) result.peak = memory.peak().total - before;
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
}  // namespace dstune
