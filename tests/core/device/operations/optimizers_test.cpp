// Optimizers' traffic per element of fp32: that of all their passes (docs/decisions/optimizers.md).
#include "core/device/operations/optimizers.hpp"

#include <gtest/gtest.h>

namespace dstune::optimizers_test {
namespace {

constexpr Tensor kTensor{nullptr, 10, DType::fp32};

void expect_moves_per_element(const Work& work, Bytes read, Bytes written) {
  EXPECT_EQ(work.read_bytes(), 10 * read) << work.operation;
  EXPECT_EQ(work.written_bytes(), 10 * written) << work.operation;
}

TEST(WorkOfAdam, IsOnePassOf28Bytes) {
  expect_moves_per_element(work_of(Adam{{}, kTensor, kTensor, kTensor, kTensor}), 16, 12);
}

Work work_of_sgd(const SgdStep& step) {
  return work_of(Sgd{step, kTensor, kTensor, kTensor, kTensor});
}

TEST(WorkOfSgd, IsThatOfThePassesItsStepHas) {
  expect_moves_per_element(work_of_sgd({}), 8, 4);
  expect_moves_per_element(work_of_sgd({.weight_decay = 0.1}), 16, 8);
  expect_moves_per_element(work_of_sgd({.momentum = 0.9, .first = true}), 12, 8);
  expect_moves_per_element(work_of_sgd({.momentum = 0.9}), 20, 12);
  expect_moves_per_element(work_of_sgd({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
                           36, 20);
}

TEST(WorkOfSgd, TouchesNeitherMomentumNorScratchWithoutNeed) {
  const Work work = work_of(Sgd{{}, kTensor, kTensor, {}, {}});

  EXPECT_EQ(work.read_bytes(), 80U);
  EXPECT_EQ(work.written_bytes(), 40U);
}

TEST(WorkOfLion, IsOnePassOf20Bytes) {
  expect_moves_per_element(work_of(Lion{{}, kTensor, kTensor, kTensor}), 12, 8);
}

TEST(WorkOfAdagrad, IsThatOfTorchsPasses) {
  const AdagradStep decayed{.weight_decay = 0.1};

  expect_moves_per_element(work_of(Adagrad{{}, kTensor, kTensor, kTensor, kTensor, kTensor}), 32,
                           20);
  expect_moves_per_element(work_of(Adagrad{decayed, kTensor, kTensor, kTensor, kTensor, kTensor}),
                           40, 24);
}

TEST(WorkOfLamb, ReadsTheGradientInItsTypeAndWritesACopy) {
  const Tensor half{nullptr, 10, DType::bf16};

  expect_moves_per_element(work_of(Lamb{{}, kTensor, kTensor, kTensor, kTensor, {}}), 28, 12);
  expect_moves_per_element(work_of(Lamb{{}, half, kTensor, kTensor, kTensor, half}), 26, 14);
}

}  // namespace
}  // namespace dstune::optimizers_test
