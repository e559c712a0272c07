#include "tests/oracle/hook_trace.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/oracle/module_places.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::oracle::hook_trace_test {
namespace {

using Names = std::vector<std::string>;

ModelSpec small_model(double dropout) {
  ModelSpec model;
  model.vocab_size = 11;
  model.max_positions = 4;
  model.hidden_size = 4;
  model.inner_size = 6;
  model.num_heads = 2;
  model.num_layers = 2;
  model.embedding_dropout = model.attention_dropout = model.residual_dropout = dropout;
  return model;
}

/// As RecordingEngine writes them.
Names names_of(const std::vector<HookEvent>& events, const ModelParameters& parameters) {
  Names names;
  for (const HookEvent& event : events) {
    switch (event.kind) {
      case HookEvent::Kind::fetch:
        names.push_back(concat("fetch ", parameters.modules.at(event.index).name));
        break;
      case HookEvent::Kind::release:
        names.push_back(concat("release ", parameters.modules.at(event.index).name));
        break;
      case HookEvent::Kind::gradient:
        names.push_back(concat("gradient ", parameters.tensors.at(event.index).name));
        break;
      case HookEvent::Kind::attention:
        break;
    }
  }
  return names;
}

class HookTraceTest : public testing::TestWithParam<double> {};

TEST_P(HookTraceTest, IsWhatTheLayersTellTheirEngine) {
  const ModelSpec model = small_model(GetParam());
  cpu::CpuDevice device(Bytes{1} << 20U);
  test::RecordingEngine engine(model, DType::fp32, device);
  const auto gpt2 =
      family_of(model).make_model(model, engine.parameters(), {1, 4, DType::fp32}, device);
  std::vector<std::int64_t> tokens = {1, 2, 3, 4};
  const HookTrace trace = make_hook_trace(model.num_layers);

  const Scalar loss(device);
  gpt2->forward(engine, {tokens.data(), 4, DType::int64}, 0, loss.tensor());
  const Names forward = std::exchange(engine.events, {});
  gpt2->backward(engine, 1);

  EXPECT_EQ(forward, names_of(trace.forward, engine.parameters()));
  EXPECT_EQ(engine.events, names_of(trace.backward, engine.parameters()));
}

INSTANTIATE_TEST_SUITE_P(Dropout, HookTraceTest, testing::Values(0.0, 0.5),
                         [](const auto& dropout) { return dropout.param == 0 ? "off" : "on"; });

// DeepSpeed's hooks of one micro-step, counted by hand: forward runs every module once, backward
// too, and four of them never come to the end of theirs.
TEST(HookTrace, EveryModuleRunsOncePerPass) {
  const ModelParameters parameters = make_model_parameters(small_model(0));
  const HookTrace trace = make_hook_trace(2);
  const auto count = [](const std::vector<HookEvent>& events, HookEvent::Kind kind) {
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [&](const HookEvent& event) { return event.kind == kind; }));
  };

  EXPECT_EQ(count(trace.forward, HookEvent::Kind::fetch), parameters.modules.size());
  EXPECT_EQ(count(trace.forward, HookEvent::Kind::release), parameters.modules.size());
  EXPECT_EQ(count(trace.backward, HookEvent::Kind::fetch), parameters.modules.size());
  EXPECT_EQ(count(trace.backward, HookEvent::Kind::release), parameters.modules.size() - 4);
  EXPECT_EQ(count(trace.backward, HookEvent::Kind::gradient), parameters.tensors.size());
}

TEST(HookTrace, BackwardOfAModuleWithoutInputGradientIsNeverOver) {
  const ModelParameters parameters = make_model_parameters(small_model(0));

  for (std::size_t module = 0; module < parameters.modules.size(); ++module) {
    const HookEvent end{HookEvent::Kind::release, module};
    const auto backward = make_hook_trace(2).backward;
    EXPECT_EQ(std::count(backward.begin(), backward.end(), end),
              parameters.modules[module].input_has_gradient ? 1 : 0)
        << parameters.modules[module].name;
  }
}

}  // namespace
}  // namespace dstune::oracle::hook_trace_test
