#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/gpt2_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/spying_device.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::gpt2_model_test {
namespace {

using test::Gpt2Fixture;
using test::RecordingEngine;

const Gpt2Fixture& fixture() {
  static const Gpt2Fixture kFixture = test::read_gpt2_fixture(test::test_data("gpt2_fixture.json"));
  return kFixture;
}

// One micro-batch of the fixture on a CPU device; memory there can be written directly.
class Gpt2Run {
 public:
  Gpt2Run(const ModelSpec& model, DType dtype)
      : device_(Bytes{1} << 30U),
        engine(model, dtype, device_),
        gpt2(family_of(model).make_model(model, engine.parameters(),
                                         {fixture().micro_batch, fixture().sequence_length, dtype},
                                         device_)),
        tokens_(device_, MemoryCategory::temporaries, fixture().tokens.size() * 8) {
    std::memcpy(tokens_.data(), fixture().tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture().values.size(); ++i) {
      engine.write_parameter(i, fixture().values[i]);
    }
  }

  double forward(std::uint64_t seed = 0) {
    const Scalar loss(device_);
    loss.set_zero();
    gpt2->forward(engine, tokens(), seed, loss.tensor());
    return test::read(device_, loss);
  }
  Tensor tokens() const { return tokens_.tensor(DType::int64); }
  Device& device() { return device_; }

 private:
  cpu::CpuDevice device_;

 public:
  RecordingEngine engine;
  std::unique_ptr<Model> gpt2;

 private:
  Buffer tokens_;
};

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

double norm_of_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

TEST(Gpt2, TensorsAreThoseOfHuggingFaceInTheirOrder) {
  const ModelParameters parameters = make_model_parameters(fixture().model);

  std::vector<std::string> names;
  for (const auto& tensor : parameters.tensors) names.push_back(tensor.name);

  EXPECT_EQ(names, fixture().names);
}

TEST(Gpt2, LossEqualsHuggingFace) {
  Gpt2Run run(fixture().model, DType::fp32);

  const double loss = run.forward();

  EXPECT_NEAR(loss, fixture().loss, 1e-6 * fixture().loss);
}

TEST(Gpt2, EveryGradientEqualsHuggingFace) {
  Gpt2Run run(fixture().model, DType::fp32);
  run.forward();

  run.gpt2->backward(run.engine, 1);

  for (std::size_t i = 0; i < fixture().gradients.size(); ++i) {
    const auto& expected = fixture().gradients[i];
    ASSERT_EQ(run.engine.gradient(i).size(), expected.size()) << fixture().names[i];
    EXPECT_LE(largest_difference(run.engine.gradient(i), expected), 1e-5 * largest(expected))
        << fixture().names[i];
  }
}

TEST(Gpt2, FactorMultipliesEveryGradient) {
  Gpt2Run once(fixture().model, DType::fp32);
  Gpt2Run scaled(fixture().model, DType::fp32);
  once.forward();
  scaled.forward();

  once.gpt2->backward(once.engine, 1);
  scaled.gpt2->backward(scaled.engine, 1024);  // a power of two scales exactly

  for (std::size_t i = 0; i < fixture().gradients.size(); ++i) {
    auto expected = once.engine.gradient(i);
    for (float& value : expected) value *= 1024;
    EXPECT_LE(largest_difference(scaled.engine.gradient(i), expected), 1e-6 * largest(expected));
  }
}

// 16-bit storage rounds to 8 (bf16) or 11 (fp16) bits at each of some 40 operations in a row. The
// gradients are compared as vectors, since single elements may nearly cancel.
class HalfPrecision : public testing::TestWithParam<DType> {};

TEST_P(HalfPrecision, LossAndGradientsAreNearThoseOfFp32) {
  Gpt2Run run(fixture().model, GetParam());
  const double unit = GetParam() == DType::bf16 ? 0x1p-8 : 0x1p-11;

  const double loss = run.forward();
  run.gpt2->backward(run.engine, 1);

  EXPECT_NEAR(loss, fixture().loss, 4 * unit * fixture().loss);
  for (std::size_t i = 0; i < fixture().gradients.size(); ++i) {
    const auto& expected = fixture().gradients[i];
    const double norm = norm_of_difference(expected, std::vector<float>(expected.size()));
    EXPECT_LE(norm_of_difference(run.engine.gradient(i), expected), 16 * unit * norm)
        << fixture().names[i];
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, HalfPrecision, testing::Values(DType::bf16, DType::fp16),
                         [](const auto& param_info) {
                           return std::string(name_of(param_info.param));
                         });

// A central difference along the tensor's own gradient direction: the loss is fp32 in its logits
// (relative error about 1e-7), the step moves it by some 1e-2, so the slope is right to about 1e-4
// plus the third-order term.
class Directional : public testing::TestWithParam<double> {};

TEST_P(Directional, FiniteDifferencesAgreeForEveryTensor) {
  ModelSpec model = fixture().model;
  model.embedding_dropout = model.attention_dropout = model.residual_dropout = GetParam();
  constexpr std::uint64_t kSeed = 7;
  Gpt2Run run(model, DType::fp32);
  run.forward(kSeed);
  run.gpt2->backward(run.engine, 1);

  for (std::size_t i = 0; i < fixture().names.size(); ++i) {
    const std::vector<float> gradient = run.engine.gradient(i);
    const auto& original = fixture().values[i];
    const double norm = norm_of_difference(gradient, std::vector<float>(gradient.size()));
    const double step = 5e-3 / std::max(norm, 0.1);
    const auto loss_at = [&](double distance) {
      auto moved = original;
      for (std::size_t k = 0; k < moved.size(); ++k) {
        moved[k] = static_cast<float>(moved[k] + distance * gradient[k] / norm);
      }
      Gpt2Run other(model, DType::fp32);
      other.engine.write_parameter(i, moved);
      return other.forward(kSeed);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, norm, 2e-3 * norm + 2e-5) << fixture().names[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Dropout, Directional, testing::Values(0.0, 0.25),
                         [](const auto& param_info) {
                           return param_info.param == 0 ? "off" : "on";
                         });

TEST(Gpt2, TiedGradientIsReadyLast) {
  Gpt2Run run(fixture().model, DType::fp32);
  run.forward();

  run.gpt2->backward(run.engine, 1);

  EXPECT_EQ(run.engine.events.back(), "gradient transformer.wte.weight");
}

TEST(Gpt2, GradientsAreReadyBeforeTheirModuleIsReleased) {
  Gpt2Run run(fixture().model, DType::fp32);
  run.forward();
  run.engine.events.clear();

  run.gpt2->backward(run.engine, 1);

  std::string open;
  for (const auto& event : run.engine.events) {
    const std::string name = event.substr(event.find(' ') + 1);
    if (event.rfind("fetch ", 0) == 0) open = name;
    if (event.rfind("gradient ", 0) == 0) {
      EXPECT_EQ(name.substr(0, name.rfind('.')), open);
    }
  }
}

/// The most that gradients take in backward if each is dropped at its hook, V = 40, h = 6.
Bytes peak_of_gradients(LinearLayers linear, std::int64_t max_positions) {
  ModelSpec model;
  model.vocab_size = 40;
  model.max_positions = max_positions;
  model.hidden_size = 6;
  model.inner_size = 8;
  model.num_layers = 1;
  model.num_heads = 2;
  DryDevice device(Bytes{1} << 30U);
  RecordingEngine engine(model, DType::bf16, device);
  const auto gpt2 =
      family_of(model).make_model(model, engine.parameters(), {1, 4, DType::bf16, linear}, device);
  const Buffer tokens(device, MemoryCategory::temporaries, 4 * 8);
  const Scalar loss(device);
  gpt2->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());

  gpt2->backward(engine, 1);

  return device.memory().peak().categories.at(MemoryCategory::gradients);
}

// PyTorch's InputBuffer: the head's gradient is a view, hence the sum with the embedding's a third
// tensor. wpe's comes before, beside the head's part alone.
TEST(Gpt2, TheTiedGradientIsAThirdTensorBesideItsTwoParts) {
  EXPECT_EQ(peak_of_gradients(LinearLayers::torch, 4), 2 * 3 * 40 * 6);
  EXPECT_EQ(peak_of_gradients(LinearLayers::torch, 100), 2 * (40 + 100) * 6);
}

TEST(Gpt2, TheTiedGradientIsSummedInPlaceWithDeepSpeedsLinear) {
  EXPECT_EQ(peak_of_gradients(LinearLayers::memory_efficient, 4), 2 * 2 * 40 * 6);
}

/// How often each operation runs in forward; "gemm + bias" is one with a third operand.
std::map<std::string, int> forward_operations(MicroBatch batch) {
  ModelSpec model;
  model.vocab_size = 40;
  model.max_positions = 4;
  model.hidden_size = 6;
  model.inner_size = 8;
  model.num_layers = 3;
  model.num_heads = 2;
  std::map<std::string, int> counts;
  DryDevice dry(Bytes{1} << 30U);
  test::SpyingDevice device(dry, [&](const Work& work) {
    const bool biased = work.operation == "gemm" && work.reads.end() - work.reads.begin() == 3;
    ++counts[concat(work.operation, biased ? " + bias" : "")];
  });
  RecordingEngine engine(model, batch.dtype, device);
  const auto gpt2 = family_of(model).make_model(model, engine.parameters(), batch, device);
  const Buffer tokens(device, MemoryCategory::temporaries, Bytes{4} * 8);
  const Scalar loss(device);
  const Tensor all = tokens.tensor(DType::int64);
  gpt2->forward(engine, all.slice(0, batch.size * batch.sequence_length), 0, loss.tensor());
  return counts;
}

// Conv1D is torch.addmm, which DeepSpeed's linear, a stand-in for nn.functional.linear, leaves be.
TEST(Gpt2, BiasesAreAddedByTheirProducts) {
  for (const LinearLayers linear : {LinearLayers::torch, LinearLayers::memory_efficient}) {
    auto counts = forward_operations({1, 4, DType::bf16, linear});

    EXPECT_EQ(counts["gemm + bias"], 3 * 4);
    EXPECT_EQ(counts["gemm"], 1);  // the head
    EXPECT_EQ(counts["add_bias"], 0);
  }
}

TEST(Gpt2, BiasesOfASingleRowAreAddedAlone) {
  auto counts = forward_operations({1, 1, DType::bf16, LinearLayers::torch});

  EXPECT_EQ(counts["gemm + bias"], 0);
  EXPECT_EQ(counts["add_bias"], 3 * 4);
}

TEST(Gpt2, NothingStaysAllocatedAfterBackward) {
  Gpt2Run run(fixture().model, DType::fp32);
  const MemoryUse before = run.device().memory().use();
  run.forward();

  run.gpt2->backward(run.engine, 1);

  EXPECT_EQ(run.device().memory().use(), before);
}

}  // namespace
}  // namespace dstune::gpt2_model_test
