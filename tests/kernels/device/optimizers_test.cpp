#include "core/device/operations/optimizers.hpp"

#include <algorithm>
#include <cmath>

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::optimizers_test {

namespace {

class OptimizersTest : public DeviceTest {
 protected:
  /// Three updates of every length: `update(gradient, t)` on the device, `expect(gradients, t)` in
  /// double on expected_.
  template <class Update, class Expect>
  void check(DType dtype, Update update, Expect expect) {
    for (const std::int64_t length : kLengths) {
      const auto size = static_cast<std::size_t>(length);
      expected_ = random_values(length, DType::fp32, 1);
      parameter_ = upload(expected_);
      for (std::size_t i = 0; i < 2; ++i) {
        state_[i] = upload(std::vector<double>(size, 0));
        scratch_[i] = buffer(length);
        kept_[i].assign(size, 0);
      }
      for (int t = 1; t <= 3; ++t) {
        const auto gradients = random_values(length, dtype, 10U + static_cast<unsigned>(t));
        const Buffer gradient = upload(gradients, dtype);
        update(gradient.tensor(dtype), t);
        expect(gradients, t);
      }
      expect_close(download(parameter()), expected_, 3e-6);
    }
  }

  Tensor parameter() { return parameter_.tensor(DType::fp32); }
  Tensor state(std::size_t i) { return state_[i].tensor(DType::fp32); }
  Tensor scratch(std::size_t i) { return scratch_[i].tensor(DType::fp32); }

  std::vector<double> expected_;
  std::vector<double> kept_[2];  // expected state

 private:
  Buffer parameter_;
  Buffer state_[2];
  Buffer scratch_[2];
};

INSTANTIATE_TEST_SUITE_P(Devices, OptimizersTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(OptimizersTest, SgdAgreesWithTheDefinition) {
  for (const bool nesterov : {false, true}) {
    const SgdStep step{0.1, 0.9, nesterov ? 0 : 0.3, 0.2, nesterov};
    check(
        DType::fp32,
        [&](Tensor gradient, int t) {
          SgdStep now = step;
          now.first = t == 1;
          device().run(Sgd{.step = now,
                           .gradient = gradient,
                           .parameter = parameter(),
                           .momentum = state(0),
                           .decayed = scratch(0)});
        },
        [&](const std::vector<double>& gradients, int t) {
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            double& buffer = kept_[0][i];
            const double g = gradients[i] + step.weight_decay * expected_[i];
            buffer = t == 1 ? g : step.momentum * buffer + (1 - step.dampening) * g;
            expected_[i] -= step.lr * (nesterov ? g + step.momentum * buffer : buffer);
          }
        });
  }
}

TEST_P(OptimizersTest, PlainSgdNeedsNeitherMomentumNorScratch) {
  check(
      DType::fp32,
      [&](Tensor gradient, int) {
        device().run(Sgd{.step = {.lr = 0.1}, .gradient = gradient, .parameter = parameter()});
      },
      [&](const std::vector<double>& gradients, int) {
        for (std::size_t i = 0; i < gradients.size(); ++i) expected_[i] -= 0.1 * gradients[i];
      });
}

TEST_P(OptimizersTest, LionAgreesWithTheDefinition) {
  const LionStep step{0.05, 0.8, 0.95, 0.1};
  check(
      DType::fp32,
      [&](Tensor gradient, int) {
        device().run(Lion{
            .step = step, .gradient = gradient, .parameter = parameter(), .exp_avg = state(0)});
      },
      [&](const std::vector<double>& gradients, int) {
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          double& momentum = kept_[0][i];
          const double direction = step.beta1 * momentum + (1 - step.beta1) * gradients[i];
          expected_[i] -=
              step.lr * (std::copysign(1, direction) + step.weight_decay * expected_[i]);
          momentum = step.beta2 * momentum + (1 - step.beta2) * gradients[i];
        }
      });
}

TEST_P(OptimizersTest, AdagradAgreesWithTheDefinition) {
  for (const double decay : {0.0, 0.1}) {
    const AdagradStep step{0.05, 1e-3, decay};
    check(
        DType::fp32,
        [&](Tensor gradient, int) {
          device().run(Adagrad{.step = step,
                               .gradient = gradient,
                               .parameter = parameter(),
                               .sum = state(0),
                               .numerator = scratch(0),
                               .root = scratch(1)});
        },
        [&](const std::vector<double>& gradients, int) {
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            const double g = gradients[i] + decay * expected_[i];
            kept_[0][i] += g * g;
            expected_[i] -= step.lr * g / (std::sqrt(kept_[0][i]) + step.epsilon);
          }
        });
  }
}

TEST_P(OptimizersTest, LambAgreesWithTheDefinitionForGradientsOfEveryType) {
  for (const DType dtype : kDTypes) {
    const LambStep step{.lr = 0.05, .epsilon = 1e-3, .weight_decay = 0.1, .gradient_scale = 4};
    check(
        dtype,
        [&](Tensor gradient, int t) {
          LambStep now = step;
          now.step = t;
          device().run(Lamb{.step = now,
                            .gradient = gradient,
                            .parameter = parameter(),
                            .exp_avg = state(0),
                            .exp_avg_sq = state(1)});
        },
        [&](const std::vector<double>& gradients, int t) {
          std::vector<double> updates;
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            const double g = gradients[i] / step.gradient_scale;
            double& first = kept_[0][i];
            double& second = kept_[1][i];
            first = step.beta1 * first + (1 - step.beta1) * g;
            second = step.beta2 * second + (1 - step.beta2) * g * g;
            const double root = std::sqrt(second / (1 - std::pow(step.beta2, t))) + step.epsilon;
            updates.push_back(first / (1 - std::pow(step.beta1, t)) / root +
                              step.weight_decay * expected_[i]);
          }
          const double ratio = std::sqrt(dot(expected_, expected_) / dot(updates, updates));
          for (std::size_t i = 0; i < updates.size(); ++i) {
            expected_[i] -= step.lr * std::clamp(ratio, 0.01, 10.0) * updates[i];
          }
        });
  }
}

TEST_P(OptimizersTest, LambWritesACopyInTheGradientsType) {
  const auto values = random_values(1030, DType::fp32, 4);
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const Buffer gradient = upload(random_values(1030, dtype, 5), dtype);
    const Buffer parameter = upload(values);
    const Buffer first = upload(std::vector<double>(1030, 0));
    const Buffer second = upload(std::vector<double>(1030, 0));
    const Buffer copy = buffer(1030, dtype);

    device().run(Lamb{.step = {},
                      .gradient = gradient.tensor(dtype),
                      .parameter = parameter.tensor(DType::fp32),
                      .exp_avg = first.tensor(DType::fp32),
                      .exp_avg_sq = second.tensor(DType::fp32),
                      .copy = copy.tensor(dtype)});

    auto expected = download(parameter.tensor(DType::fp32));
    for (double& value : expected) value = rounded(value, dtype);
    EXPECT_EQ(download(copy.tensor(dtype)), expected);
  }
}

// A norm that is NaN has no bounds.
TEST_P(OptimizersTest, LambSpoilsTheWholeTensorWithOneNan) {
  const Buffer gradient = upload({1, std::nan(""), 1});
  const Buffer parameter = upload({1, 2, 3});
  const Buffer first = upload({0, 0, 0});
  const Buffer second = upload({0, 0, 0});

  device().run(Lamb{.step = {},
                    .gradient = gradient.tensor(DType::fp32),
                    .parameter = parameter.tensor(DType::fp32),
                    .exp_avg = first.tensor(DType::fp32),
                    .exp_avg_sq = second.tensor(DType::fp32)});

  for (const double value : download(parameter.tensor(DType::fp32))) EXPECT_TRUE(std::isnan(value));
}

// Neither norm may divide by zero.
TEST_P(OptimizersTest, LambLeavesZerosWithoutGradientAlone) {
  const Buffer gradient = upload(std::vector<double>(17, 0));
  const Buffer parameter = upload(std::vector<double>(17, 0));
  const Buffer first = upload(std::vector<double>(17, 0));
  const Buffer second = upload(std::vector<double>(17, 0));

  device().run(Lamb{.step = {},
                    .gradient = gradient.tensor(DType::fp32),
                    .parameter = parameter.tensor(DType::fp32),
                    .exp_avg = first.tensor(DType::fp32),
                    .exp_avg_sq = second.tensor(DType::fp32)});

  EXPECT_EQ(download(parameter.tensor(DType::fp32)), std::vector<double>(17, 0));
}

}  // namespace

}  // namespace dstune::testing::optimizers_test
