#include <cmath>

#include "core/device/operations/optimizers.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::adam_test {

namespace {

class AdamTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, AdamTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

struct State {
  double parameter;
  double exp_avg = 0;
  double exp_avg_sq = 0;
};

/// torch.optim.Adam and AdamW, line by line.
void update(const AdamStep& step, double gradient, State& state) {
  if (step.adam_w) {
    state.parameter *= 1 - step.lr * step.weight_decay;
  } else {
    gradient += step.weight_decay * state.parameter;
  }
  state.exp_avg = step.beta1 * state.exp_avg + (1 - step.beta1) * gradient;
  state.exp_avg_sq = step.beta2 * state.exp_avg_sq + (1 - step.beta2) * gradient * gradient;
  const auto t = static_cast<double>(step.step);
  const double bias1 = step.bias_correction ? 1 - std::pow(step.beta1, t) : 1;
  const double bias2 = step.bias_correction ? 1 - std::pow(step.beta2, t) : 1;
  state.parameter -= step.lr / bias1 * state.exp_avg /
                     (std::sqrt(state.exp_avg_sq) / std::sqrt(bias2) + step.epsilon);
}

TEST_P(AdamTest, ThreeStepsAgreeWithTheDefinition) {
  for (const bool adam_w : {true, false}) {
    for (const bool bias_correction : {true, false}) {
      for (const std::int64_t length : kLengths) {
        const auto parameters = random_values(length, DType::fp32, 1);
        std::vector<State> expected;
        for (const double parameter : parameters) expected.push_back({parameter});
        const Buffer parameter = upload(parameters);
        const Buffer exp_avg = upload(std::vector<double>(parameters.size(), 0));
        const Buffer exp_avg_sq = upload(std::vector<double>(parameters.size(), 0));

        for (int t = 1; t <= 3; ++t) {
          const AdamStep step{0.01, 0.9, 0.95, 1e-8, 0.1, adam_w, bias_correction, t};
          const auto gradients = random_values(length, DType::fp32, 10U + static_cast<unsigned>(t));
          const Buffer gradient = upload(gradients);
          device().run(Adam{.step = step,
                            .gradient = gradient.tensor(DType::fp32),
                            .parameter = parameter.tensor(DType::fp32),
                            .exp_avg = exp_avg.tensor(DType::fp32),
                            .exp_avg_sq = exp_avg_sq.tensor(DType::fp32)});
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            update(step, gradients[i], expected[i]);
          }
        }

        const auto actual = download(parameter.tensor(DType::fp32));
        const auto actual_avg = download(exp_avg.tensor(DType::fp32));
        const auto actual_sq = download(exp_avg_sq.tensor(DType::fp32));
        for (std::size_t i = 0; i < actual.size(); ++i) {
          ASSERT_NEAR(actual[i], expected[i].parameter, 1e-6);
          ASSERT_NEAR(actual_avg[i], expected[i].exp_avg, 1e-6);
          ASSERT_NEAR(actual_sq[i], expected[i].exp_avg_sq, 1e-6);
        }
      }
    }
  }
}

TEST_P(AdamTest, AZeroGradientOfAFreshStateChangesNothing) {
  const Buffer gradient = upload(std::vector<double>(17, 0));
  const Buffer parameter = upload(std::vector<double>(17, 2));
  const Buffer exp_avg = upload(std::vector<double>(17, 0));
  const Buffer exp_avg_sq = upload(std::vector<double>(17, 0));

  device().run(Adam{.step = {},
                    .gradient = gradient.tensor(DType::fp32),
                    .parameter = parameter.tensor(DType::fp32),
                    .exp_avg = exp_avg.tensor(DType::fp32),
                    .exp_avg_sq = exp_avg_sq.tensor(DType::fp32)});

  EXPECT_EQ(download(parameter.tensor(DType::fp32)), std::vector<double>(17, 2));
}

}  // namespace

}  // namespace dstune::testing::adam_test
