#include <cstdint>
#include <vector>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/routing.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::router_balance_test {

namespace {

class RouterBalanceTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, RouterBalanceTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

// Two layers of two rows and three experts, of which each row has two.
TEST_P(RouterBalanceTest, TheLossIsThatOfAllLayersAndItsGradientItsDifference) {
  constexpr std::int64_t kRows = 4;
  constexpr std::int64_t kExperts = 3;
  constexpr double kFactor = 0.5;
  for (const DType dtype : kDTypes) {
    const auto probs = random_values(kRows * kExperts, dtype, 1);
    const Buffer in = upload(probs, dtype);
    const Buffer chosen[] = {upload_indices({0, 2, 0, 1}), upload_indices({2, 0, 0, 2})};
    const std::vector<double> counts{4, 1, 3};
    const Buffer tokens = upload({0, 0, 0});
    const Buffer sums = upload({0, 0, 0});
    const Buffer loss = upload({1});
    const Buffer gradient = buffer(kRows * kExperts, dtype);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const Tensor own = in.tensor(dtype).slice(layer * 2 * kExperts, 2 * kExperts);
      device().run(AddRouting{.probs = as_matrix(own, 2, kExperts),
                              .experts = chosen[layer].tensor(DType::int64),
                              .counts = tokens.tensor(DType::fp32),
                              .sums = sums.tensor(DType::fp32)});
    }

    device().run(BalanceLoss{tokens.tensor(DType::fp32), sums.tensor(DType::fp32), kRows, kFactor,
                             loss.tensor(DType::fp32)});
    device().run(BalanceLossBackward{tokens.tensor(DType::fp32), kRows, kFactor,
                                     as_matrix(gradient.tensor(dtype), kRows, kExperts)});

    const auto balance = [&](const std::vector<double>& at) {
      double sum = 0;
      for (std::size_t i = 0; i < at.size(); ++i) sum += counts[i % kExperts] / kRows * at[i];
      return kFactor * kExperts * sum / kRows;
    };
    EXPECT_EQ(download(tokens.tensor(DType::fp32)), counts);
    EXPECT_NEAR(download(loss.tensor(DType::fp32)).front(), 1 + balance(probs), 1e-5);
    expect_close(download(gradient.tensor(dtype)), numeric_gradient(balance, probs),
                 tolerance_of(dtype) + 1e-4);
  }
}

}  // namespace

}  // namespace dstune::testing::router_balance_test
