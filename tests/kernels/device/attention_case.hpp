// Attention on a device beside its definition: the scores of every query, in double.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/operations/attention.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

/// A shape whose q, k and v lie in the rows of one matrix, each head's part beside the last one's,
/// or, where they are interleaved, each head's q, k and v beside each other (kv_heads = heads).
struct AttentionCase {
  AttentionShape shape;
  bool interleaved = false;

  std::int64_t rows() const { return shape.rows(); }
  std::int64_t width() const { return shape.heads * shape.head_size; }  ///< of out
  std::int64_t columns() const { return (shape.heads + 2 * shape.kv_heads) * shape.head_size; }
  std::int64_t stride() const { return interleaved ? 3 * shape.head_size : shape.head_size; }
  /// Column of the first head of q, k or v (0, 1, 2).
  std::int64_t first_of(int part) const;
  Heads heads(const Buffer& qkv, DType dtype, int part) const;
};

/// All heads of q have a k and v of their own; what a query sees is its past.
AttentionCase causal(std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                     std::int64_t head_size, double dropout = 0, std::uint64_t seed = 0);

struct Attended {
  std::vector<double> out;
  std::vector<double> lse;
};

/// @param multipliers  (batch * heads, s, s) of the probabilities; empty: all 1
Attended attend(const AttentionCase& of, const std::vector<double>& qkv,
                const std::vector<double>& multipliers = {});

class AttentionTest : public DeviceTest {
 protected:
  struct Forward {
    Buffer lse;
    Buffer out;
  };

  Forward forward(const AttentionCase& of, const Buffer& qkv, DType dtype);
  /// The gradient of <out, d_out> by qkv.
  std::vector<double> backward(const AttentionCase& of, const std::vector<double>& d_out,
                               const Buffer& qkv, const Forward& saved, DType dtype);

  void expect_forward(const AttentionCase& of);
  /// By every element.
  void expect_gradient(const AttentionCase& of);
  /// Along three directions, for shapes of several blocks.
  void expect_directional_derivatives(const AttentionCase& of);
  void expect_directional_derivatives(const AttentionCase& of, DType dtype,
                                      const std::vector<double>& multipliers);
};

}  // namespace dstune::testing
