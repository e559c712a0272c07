#include "core/train/zero/layout/quantization_groups.hpp"

#include <iostream>

#include <gtest/gtest.h>

namespace dstune::quantization_groups_test {
namespace {

/// DeepSpeed's search (docs/decisions/quantisation.md): more and more groups until all of them are
/// equal and multiples of 8. None where it stops with an assertion.
std::optional<std::int64_t> searched(std::int64_t numel) {
  std::int64_t groups = (numel + 7999) / 8000;
  while (groups < numel && numel % (8 * groups) != 0) ++groups;
  while (numel % (16 * groups) == 0 && numel > 8000 * groups) groups *= 2;
  const bool found = numel % (8 * groups) == 0 && numel < 16000 * groups && numel > groups;
  return found ? std::optional(groups) : std::nullopt;
}

TEST(WeightGroups, AreThoseThatDeepSpeedsSearchFinds) {
  int checked = 0;
  const auto check = [&](std::int64_t first, std::int64_t last, std::int64_t stride) {
    for (std::int64_t numel = first; numel < last; numel += stride, ++checked) {
      ASSERT_EQ(weight_groups(numel), searched(numel)) << numel;
    }
  };
  check(1, 300, 1);
  check(8, 20'000, 8);
  check(800'000, 802'400, 24);
  std::cout << checked << " lengths checked\n";
}

TEST(WeightGroups, OfGpt2sTensorsOnEightRanks) {
  EXPECT_EQ(weight_groups(50257 * 768 / 8), 1733);  // wte: 2,784 each, as 50,257 is 29 * 1,733
  EXPECT_EQ(weight_groups(768 * 3072 / 8), 48);     // mlp.c_fc: 6,144 each
  EXPECT_EQ(weight_groups(768 / 8), 1);             // a bias: 96
}

TEST(WeightGroups, DoNotExistForWhatIsNoMultipleOfEight) {
  EXPECT_FALSE(weight_groups(0));
  EXPECT_FALSE(weight_groups(7));
  EXPECT_FALSE(weight_groups(8'000'004));
}

TEST(GradientPath, IsReduceScatterForOneDimensionAndForUnevenSizes) {
  EXPECT_EQ(gradient_path({768}, 16), GradientPath::reduce_scatter);
  EXPECT_EQ(gradient_path({37, 12}, 16), GradientPath::reduce_scatter);
}

TEST(GradientPath, IsQuantizedWhereTheGroupsAreDealtOutEvenly) {
  EXPECT_EQ(gradient_path({768, 2304}, 16), GradientPath::quantized);
  EXPECT_EQ(gradient_groups({768, 2304}, 16), 2304);
  EXPECT_EQ(gradient_path({50304, 768}, 16), GradientPath::quantized);
  EXPECT_EQ(gradient_path({16, 16}, 32), GradientPath::quantized);
  EXPECT_EQ(gradient_groups({16, 16}, 32), 32);
}

TEST(GradientPath, IsRefusedWhereTheyAreNot) {
  EXPECT_EQ(gradient_path({50257, 768}, 16), GradientPath::refused);  // 50,257 groups on 16 ranks
  EXPECT_EQ(gradient_path({64, 12}, 4), GradientPath::refused);       // groups of 12 elements
}

TEST(NodeGrid, IsOneNodeWhereTheRanksFitOrNodesAreNotKnown) {
  EXPECT_EQ(node_grid(4, 8), (NodeGrid{1, 4}));
  EXPECT_EQ(node_grid(8, 8), (NodeGrid{1, 8}));
  EXPECT_EQ(node_grid(16, 0), (NodeGrid{1, 16}));
}

TEST(NodeGrid, HasWholeNodesOnly) {
  EXPECT_EQ(node_grid(24, 8), (NodeGrid{3, 8}));
  EXPECT_EQ(node_grid(3, 1), (NodeGrid{3, 1}));
  EXPECT_THROW(node_grid(12, 8), QuantizationRefused);
}

}  // namespace
}  // namespace dstune::quantization_groups_test
