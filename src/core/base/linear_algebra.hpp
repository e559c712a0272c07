// Small dense systems of equations.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/base/error.hpp"

namespace dstune {

template <std::size_t N>
using RealVector = std::array<double, N>;
/// A matrix, row by row.
template <std::size_t N>
using SquareMatrix = std::array<RealVector<N>, N>;

template <std::size_t N>
double dot(const RealVector<N>& a, const RealVector<N>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

/// The decomposition A = L L^T.
template <std::size_t N>
class Cholesky {
 public:
  /// @param matrix  A, symmetric; its lower triangle is read
  /// @throws Error  unless A is positive definite
  explicit Cholesky(const SquareMatrix<N>& matrix) : lower_(matrix) {
    for (std::size_t j = 0; j < N; ++j) {
      for (std::size_t k = 0; k < j; ++k) lower_[j][j] -= lower_[j][k] * lower_[j][k];
      if (!(lower_[j][j] > 0)) throw Error("Cholesky: the matrix is not positive definite");
      lower_[j][j] = std::sqrt(lower_[j][j]);
      for (std::size_t i = j + 1; i < N; ++i) {
        for (std::size_t k = 0; k < j; ++k) lower_[i][j] -= lower_[i][k] * lower_[j][k];
        lower_[i][j] /= lower_[j][j];
      }
    }
  }

  /// A^-1 b.
  RealVector<N> solve(const RealVector<N>& b) const {
    RealVector<N> x = forward(b);
    for (std::size_t i = N; i-- > 0;) {
      for (std::size_t k = i + 1; k < N; ++k) x[i] -= lower_[k][i] * x[k];
      x[i] /= lower_[i][i];
    }
    return x;
  }

  /// x^T A^-1 x.
  double inverse_form(const RealVector<N>& x) const {
    const RealVector<N> half = forward(x);
    return dot(half, half);
  }

  /// The logarithm of A's determinant.
  double log_determinant() const {
    double sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum += 2 * std::log(lower_[i][i]);
    return sum;
  }

 private:
  /// L^-1 b.
  RealVector<N> forward(RealVector<N> b) const {
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= lower_[i][k] * b[k];
      b[i] /= lower_[i][i];
    }
    return b;
  }

  SquareMatrix<N> lower_;
};

/// Turns the lower half of A, symmetric and of any size, into L with L L^T = A; what stands above
/// is left as it is. Pivots below `least`, where rows depend on others, count as `least`.
inline void decompose(std::vector<std::vector<double>>& matrix, double least) {
  for (std::size_t j = 0; j < matrix.size(); ++j) {
    for (std::size_t i = j; i < matrix.size(); ++i) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i == j ? std::sqrt(std::fmax(sum, least)) : sum / matrix[j][j];
    }
  }
}

/// The x >= 0 that minimises x^T A x / 2 - b^T x, for a positive definite A.
/// @param start  the x with which the search begins; A^-1 b is best
template <std::size_t N>
RealVector<N> least_non_negative(const SquareMatrix<N>& matrix, const RealVector<N>& b,
                                 RealVector<N> start) {
  constexpr int kSweeps = 500;
  constexpr double kSmall = 1e-9;  // beside coefficients about 1
  bool is_inside = true;
  for (double& x : start) {
    is_inside = is_inside && x >= 0;
    x = std::fmax(x, 0);
  }
  if (is_inside) return start;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double most = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const double slope = dot(matrix[i], start) - b[i];
      const double better = std::fmax(start[i] - slope / matrix[i][i], 0);
      most = std::fmax(most, std::fabs(better - start[i]));
      start[i] = better;
    }
    if (most < kSmall) break;
  }
  return start;
}

}  // namespace dstune
