// Every family against Hugging Face's model of the same config.json.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::fixture_test {
namespace {

using test::FamilyFixture;
using test::RecordingEngine;

const FamilyFixture& fixture_of(const std::string& name) {
  static std::map<std::string, FamilyFixture> read;
  const auto found = read.find(name);
  if (found != read.end()) return found->second;
  return read.emplace(name, test::read_family_fixture(name)).first->second;
}

constexpr double kNothing = 1e-8;

double largest(const std::vector<float>& values) {
  double result = 0;
  for (const float value : values) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result = std::max(result, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return result;
}

// The fixture's micro-batch, on a device with or without arithmetic.
class FamilyRun {
 public:
  FamilyRun(const FamilyFixture& fixture, Device& device, DType dtype = DType::fp32,
            double dropout = 0, AttentionKind attention = AttentionKind::sdpa)
      : spec_(test::model_of(fixture, dropout)),
        engine(spec_, dtype, device),
        device_(&device),
        model_(family_of(spec_).make_model(spec_, engine.parameters(),
                                           {.size = fixture.micro_batch,
                                            .sequence_length = fixture.sequence_length,
                                            .dtype = dtype,
                                            .attention = attention},
                                           device)),
        tokens_(device, MemoryCategory::temporaries, fixture.tokens.size() * 8) {
    if (device.computes()) {
      std::memcpy(tokens_.data(), fixture.tokens.data(), tokens_.size());
      for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
        engine.write_parameter(i, fixture.parameters[i].values);
      }
    }
  }

  double forward() {
    const Scalar loss(*device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), 0, loss.tensor());
    return test::read(*device_, loss);
  }
  void backward() { model_->backward(engine, 1); }

  void expect_huggingfaces_numbers(const FamilyFixture& fixture) {
    EXPECT_NEAR(forward(), fixture.loss, 1e-6 * fixture.loss);
    backward();
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      const auto& [name, shape, values, expected] = fixture.parameters[i];
      ASSERT_EQ(engine.gradient(i).size(), expected.size()) << name;
      // Softmax does not feel a bias of the keys: its gradient is exactly zero.
      EXPECT_LE(largest_difference(engine.gradient(i), expected),
                2e-5 * largest(expected) + kNothing)
          << name;
    }
  }

  /// Names of the events of this kind, in their order.
  std::vector<std::string> events(const std::string& kind) const {
    std::vector<std::string> names;
    for (const auto& event : engine.events) {
      if (event.rfind(kind + " ", 0) == 0) names.push_back(event.substr(kind.size() + 1));
    }
    return names;
  }

 private:
  ModelSpec spec_;

 public:
  RecordingEngine engine;

 private:
  Device* device_;
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

class FamilyFixtures : public testing::TestWithParam<std::string> {
 protected:
  const FamilyFixture& fixture() const { return fixture_of(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(HuggingFace, FamilyFixtures, testing::ValuesIn(test::family_fixtures()),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(FamilyFixtures, TensorsAreThoseOfHuggingFaceInTheirOrder) {
  const ModelParameters actual = make_model_parameters(test::model_of(fixture()));

  ASSERT_EQ(actual.tensors.size(), fixture().parameters.size());
  for (std::size_t i = 0; i < actual.tensors.size(); ++i) {
    EXPECT_EQ(actual.tensors[i].name, fixture().parameters[i].name);
    EXPECT_EQ(actual.tensors[i].shape, fixture().parameters[i].shape) << actual.tensors[i].name;
  }
}

TEST_P(FamilyFixtures, ModulesAreThoseWhoseForwardRuns) {
  std::vector<std::pair<std::string, std::string>> actual;
  for (const auto& module : make_model_parameters(test::model_of(fixture())).modules) {
    actual.emplace_back(module.name, module.class_name);
  }

  EXPECT_EQ(actual, fixture().modules);
}

TEST_P(FamilyFixtures, ForwardEntersItsModulesInHuggingFacesOrder) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture(), device);

  run.forward();

  auto expected = fixture().calls;
  const bool is_wrapped = make_model_parameters(test::model_of(fixture())).lora.rank > 0;
  if (is_wrapped) expected.insert(expected.begin(), expected.front());  // PeftModel: the root again
  EXPECT_EQ(run.events("fetch"), expected);
}

TEST_P(FamilyFixtures, LossAndEveryGradientAreHuggingFaces) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture(), device);

  run.expect_huggingfaces_numbers(fixture());
}

TEST_P(FamilyFixtures, GradientsArriveInAutogradsOrder) {
  DryDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture(), device);
  run.forward();

  run.backward();

  EXPECT_EQ(run.events("gradient"), fixture().arrival);
}

TEST_P(FamilyFixtures, NothingStaysAllocatedAfterBackward) {
  DryDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture(), device);
  const MemoryUse before = device.memory().use();
  run.forward();

  run.backward();

  EXPECT_EQ(device.memory().use(), before);
}

// The first layer that keeps anything: what is there before it is not known, and where the lowest
// parameters are frozen PyTorch goes back through a part of it only.
std::size_t lowest(const std::vector<Bytes>& layers) {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [](Bytes kept) { return kept > 0; });
  return static_cast<std::size_t>(found - layers.begin());
}

// A model ticks after each layer: there its output stands for its input, which the layer before has
// left. What a layer adds is what is in use at its tick beyond that at the one before; of a second
// stack's first layer that is not known: 0.
std::vector<Bytes> added_by_layers(const FamilyFixture& fixture, const std::string& attention,
                                   DType dtype, double dropout,
                                   const std::vector<Bytes>& expected) {
  DryDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture, device, dtype, dropout, attention_kind_from(attention).value());
  std::vector<Bytes> at_ticks;
  device.on_tick(
      [&] { at_ticks.push_back(device.memory().use().at(MemoryCategory::activations)); });
  run.forward();
  std::vector<Bytes> added;
  for (std::size_t layer = 1; layer < at_ticks.size(); ++layer) {
    if (layer == lowest(expected)) continue;
    const bool known = layer >= expected.size() || layer < lowest(expected) || expected[layer] > 0;
    added.push_back(known ? at_ticks[layer] - at_ticks[layer - 1] : 0);
  }
  return added;
}

std::vector<Bytes> comparable(const std::vector<Bytes>& layers) {
  std::vector<Bytes> kept;
  for (std::size_t layer = 1; layer < layers.size(); ++layer) {
    if (layer != lowest(layers)) kept.push_back(layers[layer]);
  }
  return kept;
}

TEST_P(FamilyFixtures, LayersKeepWhatAutogradSaves) {
  for (const auto& saved : fixture().saved) {
    EXPECT_EQ(added_by_layers(fixture(), saved.attention, DType::fp32, 0, saved.layers),
              comparable(saved.layers))
        << saved.attention;
  }
}

TEST_P(FamilyFixtures, LayersKeepWhatAutogradSavesOnAGpu) {
  for (const auto& saved : fixture().on_cuda) {
    EXPECT_EQ(added_by_layers(fixture(), saved.attention, saved.dtype, saved.dropout, saved.layers),
              comparable(saved.layers))
        << saved.attention << ", " << name_of(saved.dtype) << ", dropout " << saved.dropout;
  }
}

TEST_P(FamilyFixtures, EagerAttentionHasTheSameLossAndGradients) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  FamilyRun run(fixture(), device, DType::fp32, 0, AttentionKind::eager);

  run.expect_huggingfaces_numbers(fixture());
}

}  // namespace
}  // namespace dstune::fixture_test
