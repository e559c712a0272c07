#include "core/device/operations/routing.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::routing_test {

namespace {

using Indices = std::vector<std::int64_t>;

class RoutingTest : public DeviceTest {
 protected:
  static Matrix fp32(const Buffer& buffer, std::int64_t rows) {
    return as_matrix(buffer.tensor(DType::fp32), rows, buffer.tensor(DType::fp32).numel / rows);
  }

  struct Chosen {
    std::vector<double> values;
    Indices columns;
  };

  Chosen choose(const std::vector<double>& scores, std::int64_t rows, std::int64_t chosen,
                std::optional<ExpertDraw> draw = std::nullopt) {
    const Buffer in = upload(scores);
    const Buffer values = buffer(rows * chosen);
    const Buffer columns = upload_indices(Indices(static_cast<std::size_t>(rows * chosen), -1));
    device().run(TopK{.scores = fp32(in, rows),
                      .values = fp32(values, rows),
                      .columns = columns.tensor(DType::int64),
                      .draw = draw});
    return {download(values.tensor(DType::fp32)), download_indices(columns)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RoutingTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(RoutingTest, TheLargestAreChosenAndOfEqualOnesTheFirst) {
  const Chosen chosen = choose({0.5, 0.25, 0.5, 0.125, -3, -1, -2, -1}, 2, 3);

  EXPECT_EQ(chosen.columns, (Indices{0, 2, 1, 1, 3, 2}));
  EXPECT_EQ(chosen.values, (std::vector<double>{0.5, 0.5, 0.25, -1, -1, -2}));
}

TEST_P(RoutingTest, EveryColumnMayBeChosen) {
  EXPECT_EQ(choose({1, 3, 2}, 1, 3).columns, (Indices{1, 2, 0}));
}

/// Tokens of each of 8 experts.
std::vector<std::int64_t> loads(const Indices& columns) {
  std::vector<std::int64_t> counts(8, 0);
  for (const std::int64_t column : columns) ++counts.at(static_cast<std::size_t>(column));
  return counts;
}

TEST_P(RoutingTest, LotsAreEvenUnlessTheyAreAskedNotToBe) {
  constexpr std::int64_t kRows = 512;
  const std::vector<double> scores(kRows * 8, 0.125);

  const Chosen even = choose(scores, kRows, 2, ExpertDraw{.seed = 3});
  const Chosen uneven = choose(scores, kRows, 2, ExpertDraw{.seed = 3, .imbalance = 1});

  const auto of_even = loads(even.columns);
  const auto of_uneven = loads(uneven.columns);
  EXPECT_GT(*std::min_element(of_even.begin(), of_even.end()), 96);  // of 128
  EXPECT_LT(*std::max_element(of_even.begin(), of_even.end()), 160);
  EXPECT_LT(*std::min_element(of_uneven.begin(), of_uneven.end()), 64);
  EXPECT_GT(*std::max_element(of_uneven.begin(), of_uneven.end()), 192);
  for (std::size_t i = 0; i < even.columns.size(); i += 2) {
    EXPECT_NE(even.columns[i], even.columns[i + 1]);
  }
  EXPECT_EQ(uneven.values, std::vector<double>(uneven.columns.size(), 0.125));
  EXPECT_NE(choose(scores, kRows, 2, ExpertDraw{.seed = 4}).columns, even.columns);
}

TEST_P(RoutingTest, GradientsGoToTheChosenColumns) {
  const Buffer d_values = upload({1, 2, 3, 4});
  const Buffer columns = upload_indices({2, 0, 1, 2});
  const Buffer d_scores = upload({9, 9, 9, 9, 9, 9});

  device().run(TopKBackward{.d_values = fp32(d_values, 2),
                            .columns = columns.tensor(DType::int64),
                            .d_scores = fp32(d_scores, 2)});

  EXPECT_EQ(download(d_scores.tensor(DType::fp32)), (std::vector<double>{2, 0, 1, 0, 3, 4}));
}

TEST_P(RoutingTest, RowsAreDividedByTheirSums) {
  const std::vector<double> x{0.5, 0.25, 0.125, 0.375, 0.75, 0.0625};
  const std::vector<double> weights{1, -2, 0.5, 3, 1, -1};
  const auto divided = [](const std::vector<double>& in) {
    std::vector<double> out;
    for (std::size_t i = 0; i < in.size(); i += 3) {
      const double sum = in[i] + in[i + 1] + in[i + 2];
      for (std::size_t j = i; j < i + 3; ++j) out.push_back(in[j] / sum);
    }
    return out;
  };
  const Buffer in = upload(x);
  const Buffer sums = buffer(2);
  const Buffer out = buffer(6);
  const Buffer d_out = upload(weights);
  const Buffer d_in = buffer(6);

  device().run(DivideBySum{fp32(in, 2), sums.tensor(DType::fp32), fp32(out, 2)});
  device().run(
      DivideBySumBackward{fp32(d_out, 2), fp32(in, 2), sums.tensor(DType::fp32), fp32(d_in, 2)});

  expect_close(download(sums.tensor(DType::fp32)), {0.875, 1.1875}, 1e-6);
  expect_close(download(out.tensor(DType::fp32)), divided(x), 1e-6);
  const auto loss = [&](const std::vector<double>& at) { return dot(divided(at), weights); };
  expect_close(download(d_in.tensor(DType::fp32)), numeric_gradient(loss, x), 1e-4);
}

TEST_P(RoutingTest, PairsAreSortedByExpertInTheirOrder) {
  constexpr std::int64_t kPairs = 6;
  const Buffer experts = upload_indices({3, 0, 3, 1, 0, 3});
  const Buffer order = upload_indices(Indices(kPairs, -1));
  const Buffer tokens = upload_indices(Indices(kPairs, -1));
  const Buffer places = upload_indices(Indices(kPairs, -1));
  const Buffer ends(device(), MemoryCategory::activations, 5 * sizeof(std::int32_t));

  device().run(SortByExpert{.experts = experts.tensor(DType::int64),
                            .chosen = 2,
                            .groups = 5,
                            .order = order.tensor(DType::int64),
                            .tokens = tokens.tensor(DType::int64),
                            .places = places.tensor(DType::int64),
                            .ends = ends.tensor(DType::int8)});

  EXPECT_EQ(download_indices(order), (Indices{1, 4, 3, 0, 2, 5}));
  EXPECT_EQ(download_indices(tokens), (Indices{0, 2, 1, 0, 1, 2}));
  EXPECT_EQ(download_indices(places), (Indices{3, 0, 4, 2, 1, 5}));
  std::vector<std::int32_t> found(5);
  std::memcpy(found.data(), download_bytes(ends.data(), ends.size()).data(), ends.size());
  EXPECT_EQ(found, (std::vector<std::int32_t>{2, 3, 3, 6, 6}));
}

}  // namespace

}  // namespace dstune::testing::routing_test
