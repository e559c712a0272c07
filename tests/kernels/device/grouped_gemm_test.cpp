#include <cstdint>
#include <vector>

#include "core/device/operations/gemm.hpp"
#include "core/device/operations/routing.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::grouped_gemm_test {

namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kGroups = 3;
constexpr std::int64_t kInner = 16;
constexpr std::int64_t kOuter = 8;
constexpr std::int64_t kGroupOf[kRows] = {0, 0, 2, 2, 2, 2};  // none in group 1

class GroupedGemmTest : public DeviceTest {
 protected:
  GroupedGemmTest() : ends_(device(), MemoryCategory::activations, kGroups * 4) {
    const Buffer experts = upload_indices({std::begin(kGroupOf), std::end(kGroupOf)});
    const Buffer others[] = {upload_indices(std::vector<std::int64_t>(kRows)),
                             upload_indices(std::vector<std::int64_t>(kRows)),
                             upload_indices(std::vector<std::int64_t>(kRows))};
    device().run(SortByExpert{.experts = experts.tensor(DType::int64),
                              .chosen = 1,
                              .groups = kGroups,
                              .order = others[0].tensor(DType::int64),
                              .tokens = others[1].tensor(DType::int64),
                              .places = others[2].tensor(DType::int64),
                              .ends = ends_.tensor(DType::int8)});
  }
  RowGroups groups() const { return {ends_.tensor(DType::int8), kGroups}; }

 private:
  Buffer ends_;
};
INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemmTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

std::size_t at(std::int64_t row, std::int64_t col, std::int64_t cols) {
  return static_cast<std::size_t>(row * cols + col);
}

TEST_P(GroupedGemmTest, RowsMeetTheMatrixOfTheirGroup) {
  for (const DType dtype : kDTypes) {
    for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
      const bool is_turned = transpose == Transpose::yes;
      const auto a = random_values(kRows * kInner, dtype, 1);
      const auto b = random_values(kGroups * kInner * kOuter, dtype, 2);
      const Buffer left = upload(a, dtype);
      const Buffer right = upload(b, dtype);
      const Buffer out = buffer(kRows * kOuter, dtype);
      const std::int64_t b_rows = is_turned ? kOuter : kInner;
      const std::int64_t b_cols = is_turned ? kInner : kOuter;

      device().run(GroupedGemm{.transpose_b = transpose,
                               .groups = groups(),
                               .a = as_matrix(left.tensor(dtype), kRows, kInner),
                               .b = as_matrix(right.tensor(dtype), kGroups * b_rows, b_cols),
                               .c = as_matrix(out.tensor(dtype), kRows, kOuter)});

      std::vector<double> expected(kRows * kOuter, 0);
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kOuter; ++j) {
          for (std::int64_t k = 0; k < kInner; ++k) {
            const std::int64_t row = kGroupOf[i] * b_rows + (is_turned ? j : k);
            expected[at(i, j, kOuter)] +=
                a[at(i, k, kInner)] * b[at(row, is_turned ? k : j, b_cols)];
          }
        }
      }
      expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
    }
  }
}

TEST_P(GroupedGemmTest, GroupsHaveMatricesOfTheirRowsAndZerosWithoutRows) {
  for (const DType dtype : kDTypes) {
    const auto a = random_values(kRows * kOuter, dtype, 1);
    const auto b = random_values(kRows * kInner, dtype, 2);
    const Buffer left = upload(a, dtype);
    const Buffer right = upload(b, dtype);
    const Buffer out = upload(std::vector<double>(kGroups * kOuter * kInner, 7), dtype);

    device().run(GroupedGemmByRows{.groups = groups(),
                                   .a = as_matrix(left.tensor(dtype), kRows, kOuter),
                                   .b = as_matrix(right.tensor(dtype), kRows, kInner),
                                   .c = as_matrix(out.tensor(dtype), kGroups * kOuter, kInner)});

    std::vector<double> expected(kGroups * kOuter * kInner, 0);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kOuter; ++j) {
        for (std::int64_t k = 0; k < kInner; ++k) {
          expected[at(kGroupOf[i] * kOuter + j, k, kInner)] +=
              a[at(i, j, kOuter)] * b[at(i, k, kInner)];
        }
      }
    }
    expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
  }
}

}  // namespace

}  // namespace dstune::testing::grouped_gemm_test
