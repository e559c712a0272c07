// Activation checkpointing: every family computes the same with it.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/device/dry/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/core/train/families/checkpointed_run.hpp"
#include "tests/support/family_fixture.hpp"

namespace dstune::checkpointing_test {
namespace {

using test::CheckpointedRun;
using test::FamilyFixture;
using test::kRoom;
using test::layers_of;
using test::Way;

class Checkpointing : public testing::TestWithParam<std::string> {
 protected:
  FamilyFixture fixture() const { return test::read_family_fixture(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Families, Checkpointing, testing::ValuesIn(test::family_fixtures()),
                         [](const auto& param_info) { return param_info.param; });

// A reentrant checkpoint runs without gradients at first: the routers' own loss has none.
TEST_P(Checkpointing, GradientsAreThoseWithoutItBitForBit) {
  const FamilyFixture fixture = this->fixture();
  for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
    Way way{.dropout = 0.1, .attention = attention};
    cpu::CpuDevice device(kRoom);
    const auto expected = CheckpointedRun(fixture, device, way).gradients();
    const auto expected_reentrant =
        CheckpointedRun(test::without_router_loss(fixture), device, way).gradients();
    for (const char* text : {"true", R"("every_2_layers")", R"("every_1_layers_reentrant")",
                             R"("groups_of_2_layers")", R"("groups_of_3_layers_by_deepspeed")"}) {
      way.checkpointing = json::parse(text);
      const bool reentrant = activation_checkpointing_from_json(way.checkpointing).reentrant;
      EXPECT_EQ(CheckpointedRun(fixture, device, way).gradients(),
                reentrant ? expected_reentrant : expected)
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

}  // namespace
}  // namespace dstune::checkpointing_test
