// What the fixtures of T5 do not show: values in 16 bit, and with dropout.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/core/train/families/checkpointed_run.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/spying_device.hpp"

namespace dstune::t5_model_test {
namespace {

using test::FamilyFixture;
using test::RecordingEngine;

struct How {
  DType dtype = DType::fp32;
  AttentionKind attention = AttentionKind::sdpa;
};

// One micro-batch of a fixture, with parameters of one's own.
class T5Run {
 public:
  T5Run(const FamilyFixture& fixture, const ModelSpec& spec, const How& how, Device& device)
      : engine(spec, how.dtype, device),
        device_(device),
        model_(family_of(spec).make_model(spec, engine.parameters(),
                                          {.size = fixture.micro_batch,
                                           .sequence_length = fixture.sequence_length,
                                           .dtype = how.dtype,
                                           .attention = how.attention},
                                          device)),
        tokens_(device, MemoryCategory::temporaries, fixture.tokens.size() * 8) {
    std::memcpy(tokens_.data(), fixture.tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      engine.write_parameter(i, fixture.parameters[i].values);
    }
  }

  double forward(std::uint64_t seed) {
    const Scalar loss(device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), seed, loss.tensor());
    return test::read(device_, loss);
  }
  void backward() { model_->backward(engine, 1); }

  RecordingEngine engine;

 private:
  Device& device_;
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

using Case = std::tuple<std::string, AttentionKind>;

class T5Fixtures : public testing::TestWithParam<Case> {
 protected:
  T5Fixtures()
      : fixture_(test::read_family_fixture(std::get<0>(GetParam()))),
        attention_(std::get<1>(GetParam())) {}

  FamilyFixture fixture_;
  AttentionKind attention_;
};

INSTANTIATE_TEST_SUITE_P(Attention, T5Fixtures,
                         testing::Combine(testing::Values("t5", "t5_gated"),
                                          testing::Values(AttentionKind::sdpa,
                                                          AttentionKind::eager)),
                         [](const auto& param_info) {
                           return std::get<0>(param_info.param) + "_" +
                                  std::string(name_of(std::get<1>(param_info.param)));
                         });

TEST_P(T5Fixtures, LossAndGradientsIn16BitAreNearThoseOfFp32) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    cpu::CpuDevice device(Bytes{1} << 30U);
    T5Run run(fixture_, test::model_of(fixture_), {dtype, attention_}, device);
    const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;

    const double loss = run.forward(0);
    run.backward();

    EXPECT_NEAR(loss, fixture_.loss, 4 * unit * fixture_.loss);
    for (std::size_t i = 0; i < fixture_.parameters.size(); ++i) {
      const auto& expected = fixture_.parameters[i].gradient;
      auto error = run.engine.gradient(i);
      for (std::size_t k = 0; k < error.size(); ++k) error[k] -= expected[k];
      EXPECT_LE(norm_of(error), 24 * unit * norm_of(expected) + 0.05 * unit)
          << fixture_.parameters[i].name;
    }
  }
}

// A central difference along the gradient's own direction, every place dropping out. The kinks of
// ReLU make it coarse; dropout of another seed would be wrong by a multiple.
TEST_P(T5Fixtures, FiniteDifferencesAgreeWithDropout) {
  constexpr std::uint64_t kSeed = 7;
  ModelSpec spec = test::model_of(fixture_);
  spec.embedding_dropout = spec.attention_dropout = spec.residual_dropout = 0.25;
  cpu::CpuDevice device(Bytes{1} << 30U);
  const How how{.attention = attention_};
  T5Run run(fixture_, spec, how, device);
  run.forward(kSeed);
  run.backward();

  for (std::size_t i = 0; i < fixture_.parameters.size(); ++i) {
    const auto& parameter = fixture_.parameters[i];
    const std::vector<float> gradient = run.engine.gradient(i);
    const double norm = norm_of(gradient);
    const double step = 1e-3 / std::max(norm, 0.1);
    const auto loss_at = [&](double distance) {
      auto moved = parameter.values;
      for (std::size_t k = 0; k < moved.size() && norm > 0; ++k) {
        moved[k] = static_cast<float>(moved[k] + distance * gradient[k] / norm);
      }
      T5Run other(fixture_, spec, how, device);
      other.engine.write_parameter(i, moved);
      return other.forward(kSeed);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, norm, 3e-2 * norm + 2e-4) << parameter.name;
  }
}

// transformers' T5Attention: "if self.gradient_checkpointing and self.training:
// position_bias.requires_grad = True", of the zeros that cross attention adds.
TEST_P(T5Fixtures, CheckpointsGiveZerosOfCrossAttentionAGradient) {
  const auto gradients_of_biases = [&](bool checkpointing) {
    int count = 0;
    cpu::CpuDevice inner(test::kRoom);
    test::SpyingDevice device(inner, [&](const Work& work) {
      if (work.operation == "score_bias_gradient") ++count;
    });
    test::Way way;
    way.checkpointing = checkpointing;
    way.attention = attention_;
    test::CheckpointedRun run(fixture_, device, way);
    run.forward();
    run.backward();
    return count;
  };
  constexpr int kLayers = 2;  // of either stack

  EXPECT_EQ(gradients_of_biases(false), 2 * kLayers);
  EXPECT_EQ(gradients_of_biases(true), 3 * kLayers);
}

}  // namespace
}  // namespace dstune::t5_model_test
