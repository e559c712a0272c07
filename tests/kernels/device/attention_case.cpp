#include "tests/kernels/device/attention_case.hpp"

#include <cmath>

namespace dstune::testing {

std::int64_t AttentionCase::first_of(int part) const {
  const std::int64_t d = shape.head_size;
  if (interleaved) return part * d;
  return part == 0 ? 0 : (shape.heads + (part - 1) * shape.kv_heads) * d;
}

Heads AttentionCase::heads(const Buffer& qkv, DType dtype, int part) const {
  return heads_in(as_matrix(qkv.tensor(dtype), rows(), columns()), first_of(part),
                  part == 0 ? shape.heads : shape.kv_heads, shape.head_size, stride());
}

AttentionCase causal(std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                     std::int64_t head_size, double dropout, std::uint64_t seed) {
  return {{.batch = batch,
           .sequence = sequence,
           .heads = heads,
           .kv_heads = heads,
           .head_size = head_size,
           .dropout = dropout,
           .seed = seed}};
}

namespace {

bool sees(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  if (shape.causal && key > query) return false;
  return shape.window == 0 || std::abs(query - key) < shape.window;
}

/// One head of q with its k and v.
class Head {
 public:
  Head(const AttentionCase& of, const std::vector<double>& qkv, std::int64_t index)
      : of_(of), qkv_(qkv), first_(index / of.shape.heads * of.shape.sequence) {
    const std::int64_t head = index % of.shape.heads;
    columns_[0] = of.first_of(0) + head * of.stride();
    const std::int64_t kv_head = head / (of.shape.heads / of.shape.kv_heads);
    columns_[1] = of.first_of(1) + kv_head * of.stride();
    columns_[2] = of.first_of(2) + kv_head * of.stride();
  }

  double at(int part, std::int64_t row, std::int64_t l) const {
    return qkv_[static_cast<std::size_t>((first_ + row) * of_.columns() + columns_[part] + l)];
  }

  double score(std::int64_t query, std::int64_t key) const {
    const AttentionShape& shape = of_.shape;
    double sum = 0;
    for (std::int64_t l = 0; l < shape.head_size; ++l) sum += at(0, query, l) * at(1, key, l);
    const double scale =
        shape.scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.head_size)) : shape.scale;
    if (shape.softcap == 0) return sum * scale;
    return shape.softcap * std::tanh(sum * scale / shape.softcap);
  }

 private:
  const AttentionCase& of_;
  const std::vector<double>& qkv_;
  std::int64_t first_;
  std::int64_t columns_[3];
};

}  // namespace

Attended attend(const AttentionCase& of, const std::vector<double>& qkv,
                const std::vector<double>& multipliers) {
  const AttentionShape& shape = of.shape;
  const std::int64_t s = shape.sequence;
  Attended result;
  result.out.assign(static_cast<std::size_t>(of.rows() * of.width()), 0);
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const Head head(of, qkv, index);
    for (std::int64_t i = 0; i < s; ++i) {
      std::vector<double> p(static_cast<std::size_t>(s), 0);
      double sum = 0;
      for (std::int64_t j = 0; j < s; ++j) {
        if (!sees(shape, i, j)) continue;
        sum += p[static_cast<std::size_t>(j)] = std::exp(head.score(i, j));
      }
      result.lse.push_back(std::log(sum));
      double* const out = &result.out[static_cast<std::size_t>(
          (index / shape.heads * s + i) * of.width() + index % shape.heads * shape.head_size)];
      for (std::int64_t j = 0; j < s; ++j) {
        if (p[static_cast<std::size_t>(j)] == 0) continue;
        const double multiplier =
            multipliers.empty() ? 1
                                : multipliers[static_cast<std::size_t>((index * s + i) * s + j)];
        const double weight = p[static_cast<std::size_t>(j)] / sum * multiplier;
        for (std::int64_t l = 0; l < shape.head_size; ++l) out[l] += weight * head.at(2, j, l);
      }
    }
  }
  return result;
}

AttentionTest::Forward AttentionTest::forward(const AttentionCase& of, const Buffer& qkv,
                                              DType dtype) {
  const AttentionShape& shape = of.shape;
  Forward result{buffer(shape.batch * shape.heads * shape.sequence),
                 buffer(of.rows() * of.width(), dtype)};
  const Buffer workspace = buffer(device().attention_workspace(shape));
  device().run(Attention{.shape = shape,
                         .q = of.heads(qkv, dtype, 0),
                         .k = of.heads(qkv, dtype, 1),
                         .v = of.heads(qkv, dtype, 2),
                         .lse = result.lse.tensor(DType::fp32),
                         .workspace = workspace.tensor(DType::fp32),
                         .out = as_matrix(result.out.tensor(dtype), of.rows(), of.width())});
  return result;
}

std::vector<double> AttentionTest::backward(const AttentionCase& of,
                                            const std::vector<double>& d_out, const Buffer& qkv,
                                            const Forward& saved, DType dtype) {
  const Buffer d_out_buffer = upload(d_out, dtype);
  const Buffer d_qkv = buffer(of.rows() * of.columns(), dtype);
  const Buffer workspace = buffer(device().attention_workspace(of.shape));
  device().run(
      AttentionBackward{.shape = of.shape,
                        .d_out = as_matrix(d_out_buffer.tensor(dtype), of.rows(), of.width()),
                        .q = of.heads(qkv, dtype, 0),
                        .k = of.heads(qkv, dtype, 1),
                        .v = of.heads(qkv, dtype, 2),
                        .out = as_matrix(saved.out.tensor(dtype), of.rows(), of.width()),
                        .lse = saved.lse.tensor(DType::fp32),
                        .workspace = workspace.tensor(DType::fp32),
                        .d_q = of.heads(d_qkv, dtype, 0),
                        .d_k = of.heads(d_qkv, dtype, 1),
                        .d_v = of.heads(d_qkv, dtype, 2)});
  return download(d_qkv.tensor(dtype));
}

void AttentionTest::expect_forward(const AttentionCase& of) {
  for (const DType dtype : kDTypes) {
    const auto qkv = random_values(of.rows() * of.columns(), dtype, 1);

    const Forward result = forward(of, upload(qkv, dtype), dtype);

    const Attended expected = attend(of, qkv);
    expect_close(download(result.out.tensor(dtype)), expected.out, tolerance_of(dtype));
    expect_close(download(result.lse.tensor(DType::fp32)), expected.lse, 1e-5);
  }
}

void AttentionTest::expect_gradient(const AttentionCase& of) {
  for (const DType dtype : kDTypes) {
    const auto qkv = random_values(of.rows() * of.columns(), dtype, 1);
    const auto d_out = random_values(of.rows() * of.width(), dtype, 2);
    const Buffer qkv_buffer = upload(qkv, dtype);
    const Forward saved = forward(of, qkv_buffer, dtype);

    const auto actual = backward(of, d_out, qkv_buffer, saved, dtype);

    const auto expected = numeric_gradient(
        [&](const std::vector<double>& v) { return dot(attend(of, v).out, d_out); }, qkv);
    expect_close(actual, expected, 2 * tolerance_of(dtype));  // out is rounded as well
  }
}

void AttentionTest::expect_directional_derivatives(const AttentionCase& of) {
  for (const DType dtype : kDTypes) expect_directional_derivatives(of, dtype, {});
}

void AttentionTest::expect_directional_derivatives(const AttentionCase& of, DType dtype,
                                                   const std::vector<double>& multipliers) {
  const auto qkv = random_values(of.rows() * of.columns(), dtype, 1);
  const auto d_out = random_values(of.rows() * of.width(), dtype, 2);
  const Buffer qkv_buffer = upload(qkv, dtype);
  const Forward saved = forward(of, qkv_buffer, dtype);

  const auto gradient = backward(of, d_out, qkv_buffer, saved, dtype);

  expect_close(download(saved.out.tensor(dtype)), attend(of, qkv, multipliers).out,
               2 * tolerance_of(dtype));
  for (const unsigned seed : {3U, 4U, 5U}) {
    const auto direction = random_values(of.rows() * of.columns(), DType::fp32, seed);
    const auto along = [&](const std::vector<double>& t) {
      auto moved = qkv;
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += t[0] * direction[i];
      return dot(attend(of, moved, multipliers).out, d_out);
    };
    const double expected = numeric_gradient(along, {0})[0];
    EXPECT_NEAR(dot(gradient, direction), expected, dtype == DType::fp32 ? 1e-4 : 0.1);
  }
}

}  // namespace dstune::testing
