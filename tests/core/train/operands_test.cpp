// The values of a step are those of training: hardware is faster with zeros and constants, since
// what switches less takes less power.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dtype.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/spying_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::operands_test {
namespace {

constexpr int kUnmeasured = 2;
constexpr int kSequence = 40;
// The last token of a sequence has no label, and so no gradient above the last attention.
constexpr double kMostZeros = 1.5 / kSequence;

/// What a matrix product reads, as numbers.
struct Values {
  double zeros = 0;     ///< share
  double distinct = 0;  ///< how many numbers there are, per element
  double kurtosis = 0;  ///< 3 if normal, 1.8 if uniform, 1 for two values
};

template <class T>
std::vector<float> floats(const Operand& operand) {
  const auto* const elements = static_cast<const T*>(operand.data);
  std::vector<float> values(operand.bytes / sizeof(T));
  std::transform(elements, elements + values.size(), values.begin(),
                 [](T element) { return to_float(element); });
  return values;
}

Values describe(std::vector<float> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const float value : values) mean += static_cast<double>(value) / count;
  double second = 0;
  double fourth = 0;
  Values result;
  for (const float value : values) {
    const double square = std::pow(static_cast<double>(value) - mean, 2);
    second += square / count;
    fourth += square * square / count;
    result.zeros += value == 0 ? 1 / count : 0;
  }
  result.kurtosis = fourth / (second * second);
  std::sort(values.begin(), values.end());
  const auto end = std::unique(values.begin(), values.end());
  result.distinct = static_cast<double>(end - values.begin()) / count;
  return result;
}

/// Of all matrix products of the first measured step of `tiny`.
std::vector<Values> operands_of_first_step(const test::TinyExperiment& tiny) {
  Experiment experiment = tiny.make();
  experiment.settings.sequence_length = kSequence;
  std::vector<Values> operands;
  bool measures = false;
  cpu::CpuDevice cpu(experiment.settings.memory_limit);
  test::SpyingDevice device(cpu, [&](const Work& work) {
    if (!measures || work.operation != "gemm") return;
    for (const Operand& operand : std::span(work.reads.begin(), 2)) {  // not the bias
      operands.push_back(
          describe(tiny.dtype == DType::fp32 ? floats<float>(operand) : floats<BFloat16>(operand)));
    }
  });
  test::ThreadTeam team(1);
  test::ThreadCollectives collectives(device, team, 0);
  TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
  for (int i = 0; i < kUnmeasured; ++i) step.run();
  measures = true;
  step.run();
  return operands;
}

class OperandsTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Stages, OperandsTest, testing::Values(0, 1, 2, 3));

TEST_P(OperandsTest, AreNeitherZerosNorConstants) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    test::TinyExperiment tiny;
    tiny.stage = GetParam();
    tiny.micro_batch = 2;
    tiny.model.max_positions = kSequence;
    tiny.dtype = dtype;

    const std::vector<Values> operands = operands_of_first_step(tiny);

    ASSERT_GE(operands.size(), 24U);  // two per product, three products per layer and more
    for (const Values& values : operands) {
      EXPECT_LT(values.zeros, kMostZeros);
      EXPECT_GT(values.distinct, dtype == DType::fp32 ? 0.9 : 0.02);
      EXPECT_GT(values.kurtosis, 1.8);
    }
  }
}

}  // namespace
}  // namespace dstune::operands_test
