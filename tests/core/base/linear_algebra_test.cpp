#include "core/base/linear_algebra.hpp"

#include <gtest/gtest.h>

namespace dstune::linear_algebra_test {
namespace {

constexpr SquareMatrix<3> kMatrix{{{4, 2, 1}, {2, 5, 3}, {1, 3, 6}}};

TEST(Cholesky, SolvesASystem) {
  const RealVector<3> expected{1, -2, 3};
  RealVector<3> right{};
  for (std::size_t i = 0; i < 3; ++i) right[i] = dot(kMatrix[i], expected);

  const RealVector<3> solution = Cholesky(kMatrix).solve(right);

  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(solution[i], expected[i], 1e-12);
}

TEST(Cholesky, KnowsTheDeterminant) {
  EXPECT_NEAR(Cholesky(kMatrix).log_determinant(), std::log(67), 1e-12);
}

TEST(Cholesky, GivesTheInverseForm) {
  const RealVector<3> x{1, 2, -1};
  const Cholesky factors(kMatrix);

  EXPECT_NEAR(factors.inverse_form(x), dot(x, factors.solve(x)), 1e-12);
}

TEST(Cholesky, RefusesWhatIsNotPositiveDefinite) {
  EXPECT_THROW(Cholesky(SquareMatrix<2>{{{1, 2}, {2, 1}}}), Error);
}

TEST(LeastNonNegative, IsTheSolutionWhereThatIsNotNegative) {
  EXPECT_EQ(least_non_negative(kMatrix, {7, 10, 10}, {1, 1, 1}), (RealVector<3>{1, 1, 1}));
}

// Minimum of (x^2 + y^2) / 2 + 0.9 x y - x - 0 y: unconstrained, y is negative.
TEST(LeastNonNegative, StaysAtTheBound) {
  const SquareMatrix<2> matrix{{{1, 0.9}, {0.9, 1}}};
  const RealVector<2> right{1, 0};

  const RealVector<2> least = least_non_negative(matrix, right, Cholesky(matrix).solve(right));

  EXPECT_NEAR(least[0], 1, 1e-8);
  EXPECT_EQ(least[1], 0);
}

TEST(Decompose, GivesTheFactorOfAMatrixOfAnySize) {
  std::vector<std::vector<double>> lower;
  for (const auto& row : kMatrix) lower.emplace_back(row.begin(), row.end());

  decompose(lower, 0);

  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (std::size_t k = 0; k <= j; ++k) product += lower[i][k] * lower[j][k];
      EXPECT_NEAR(product, kMatrix[i][j], 1e-12);
    }
  }
}

TEST(Decompose, GivesDependentRowsTheLeastPivot) {
  std::vector<std::vector<double>> lower{{4, 0}, {2, 1}};
  decompose(lower, 1e-12);
  EXPECT_DOUBLE_EQ(lower[1][1], 1e-6);
}

}  // namespace
}  // namespace dstune::linear_algebra_test
