#include "core/train/nn/attention/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::nn::attention_test {
namespace {

constexpr Bytes kUnlimited = Bytes{1} << 40U;

/// One call whose q, k and v are matrices of their own, and whose output somebody else saves.
class LayerRun {
 public:
  LayerRun(Device& device, AttentionKind kind, const AttentionShape& shape, DType dtype,
           SoftmaxType softmax)
      : shape_(shape),
        softmax_(softmax),
        engine_(ModelSpec(), dtype, dry_),
        context_({.size = shape.batch,
                  .sequence_length = shape.sequence,
                  .dtype = dtype,
                  .attention = kind},
                 device),
        tape_(context_, engine_) {
    const std::int64_t heads[] = {shape.heads, shape.kv_heads, shape.kv_heads};
    for (std::size_t i = 0; i < 3; ++i) {
      Value rows = new_value(device, dtype, shape.rows(), heads[i] * shape.head_size);
      inputs_.push_back(tape_.record(std::move(rows),
                                     [this, i](Tape&, Value d) { gradients_[i] = std::move(d); }));
    }
  }

  void fill() {
    std::mt19937 random(3);
    for (const Value& input : inputs_) write(input, random);
  }
  void forward(const Value& mask = {}) {
    out_ = attend(tape_, softmax_, shape_, inputs_[0], inputs_[1], inputs_[2], mask);
    inputs_.clear();
  }
  Value mask() { return attention_mask(tape_, shape_); }
  std::vector<float> output() const { return read(out_); }

  /// Gradients of q, k, v, one behind the other.
  std::vector<float> backward() {
    Value d_out = new_like(*context_.device, out_);
    std::mt19937 random(4);
    if (context_.device->computes()) write(d_out, random);
    const std::size_t node = out_.node;
    out_ = {};
    tape_.backward(node, std::move(d_out));
    std::vector<float> all;
    for (const Value& gradient : gradients_) {
      const auto values = read(gradient);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  void write(const Value& rows, std::mt19937& random) const {
    std::vector<float> values(static_cast<std::size_t>(rows.numel()));
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::generate(values.begin(), values.end(), [&] { return uniform(random); });
    context_.device->write(values, rows.tensor());
  }
  std::vector<float> read(const Value& rows) const {
    std::vector<float> values(static_cast<std::size_t>(rows.numel()));
    context_.device->read(rows.tensor(), values);
    return values;
  }

  AttentionShape shape_;
  SoftmaxType softmax_;
  DryDevice dry_{kUnlimited};
  test::RecordingEngine engine_;
  BatchContext context_;
  Tape tape_;
  std::vector<Value> inputs_;
  std::array<Value, 3> gradients_;
  Value out_;
};

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-6F) << i;
}

TEST(Attention, EagerComputesWhatSdpaComputes) {
  const AttentionShape whole{.batch = 2, .sequence = 9, .heads = 4, .kv_heads = 4, .head_size = 3};
  AttentionShape single = whole;
  single.batch = 1;
  AttentionShape grouped = whole;
  grouped.kv_heads = 2;
  grouped.window = 4;
  AttentionShape bidirectional = grouped;
  bidirectional.causal = false;
  bidirectional.window = 0;
  bidirectional.scale = 0.3;
  bidirectional.batch = 1;
  for (const AttentionShape& shape : {whole, single, grouped, bidirectional}) {
    cpu::CpuDevice device(kUnlimited);
    LayerRun sdpa(device, AttentionKind::sdpa, shape, DType::fp32, SoftmaxType::fp32);
    sdpa.fill();
    sdpa.forward();
    const auto output = sdpa.output();
    const auto gradients = sdpa.backward();
    for (const AttentionKind kind : {AttentionKind::eager, AttentionKind::eager_torch_1_10}) {
      LayerRun eager(device, kind, shape, DType::fp32, SoftmaxType::fp32);
      eager.fill();
      const Value mask = eager.mask();

      eager.forward(mask);

      expect_near(eager.output(), output);
      expect_near(eager.backward(), gradients);
    }
  }
}

TEST(Attention, EagerDropsTheSameInBothDirections) {
  const AttentionShape shape{.batch = 2,
                             .sequence = 9,
                             .heads = 2,
                             .kv_heads = 2,
                             .head_size = 3,
                             .dropout = 0.5,
                             .seed = 7};
  cpu::CpuDevice device(kUnlimited);
  LayerRun eager(device, AttentionKind::eager, shape, DType::fp32, SoftmaxType::model);
  eager.fill();

  eager.forward();
  const auto out = eager.output();
  const auto gradient = eager.backward();

  // The output is linear in v: <out, d_out> is <v, d_v>.
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> inputs(gradient.size());
  std::generate(inputs.begin(), inputs.end(), [&] { return uniform(random); });
  std::mt19937 of_d_out(4);
  double expected = 0;
  for (const float value : out) expected += static_cast<double>(value * uniform(of_d_out));
  double actual = 0;
  for (std::size_t i = 2 * gradient.size() / 3; i < gradient.size(); ++i) {
    actual += static_cast<double>(inputs[i] * gradient[i]);
  }
  EXPECT_NEAR(actual, expected, 1e-4);
}

/// Tells what is in use after forward and at the highest of backward, without a layer's inputs.
class PeakDevice final : public DryDevice {
 public:
  PeakDevice() : DryDevice(kUnlimited) {}
  Bytes in_use() const { return memory().use().at(MemoryCategory::activations); }
  Bytes peak = 0;

 private:
  void account(const Work& /*work*/) override { peak = std::max(peak, in_use()); }
};

struct Memory {
  Bytes saved;
  Bytes peak_of_forward;
  Bytes peak_of_backward;
};

/// Per token; with q, k and v as long as they live.
Memory measure(AttentionKind kind, AttentionShape shape, DType dtype, SoftmaxType softmax) {
  PeakDevice device;
  LayerRun run(device, kind, shape, dtype, softmax);
  const Value mask = run.mask();
  const Bytes size = mask ? mask.storage->buffer.size() : 0;
  run.forward(mask);
  const auto rows = static_cast<Bytes>(shape.rows());
  const Bytes forward = std::exchange(device.peak, 0) - size;
  const Bytes saved = device.in_use() - size;
  run.backward();
  return {saved / rows, forward / rows, (device.peak - size) / rows};
}

// Attention's part of docs/deepspeed-step.md, "What a block keeps", per token: h = 64 elements of 2
// bytes for each of q, k and v, or their copies, and the output that the projection saves; a s
// scores.
constexpr AttentionShape kShape{
    .batch = 2, .sequence = 64, .heads = 4, .kv_heads = 4, .head_size = 16};
constexpr Bytes kHidden = 2 * 64;
constexpr Bytes kScores = 4 * 64;

Bytes saved(AttentionKind kind, AttentionShape shape, DType dtype, double dropout,
            SoftmaxType softmax) {
  shape.dropout = dropout;
  return measure(kind, shape, dtype, softmax).saved;
}

TEST(AttentionSaves, WhatPyTorchSaves) {
  using enum AttentionKind;
  using enum SoftmaxType;
  AttentionShape grouped = kShape;
  grouped.kv_heads = 2;
  AttentionShape window = grouped;
  window.window = 32;
  AttentionShape capped = kShape;
  capped.softcap = 50;

  EXPECT_EQ(saved(sdpa, kShape, DType::bf16, 0.1, fp32), 4 * kHidden + 4 * 4);
  EXPECT_EQ(saved(flash, grouped, DType::bf16, 0, fp32), 3 * kHidden + 4 * 4);
  EXPECT_EQ(saved(sdpa, grouped, DType::bf16, 0, fp32), 3 * kHidden + 4 * 4);
  EXPECT_EQ(saved(sdpa, window, DType::bf16, 0, fp32), 4 * kHidden + 4 * 4 + 2 * 64);
  EXPECT_EQ(saved(flash, window, DType::bf16, 0, fp32), 3 * kHidden + 4 * 4);
  EXPECT_EQ(saved(sdpa, capped, DType::bf16, 0, fp32), 4 * kHidden + 8 * kScores);
  EXPECT_EQ(saved(flash, capped, DType::bf16, 0, fp32), 4 * kHidden + 4 * 4);
  EXPECT_EQ(saved(eager, kShape, DType::bf16, 0, model), 4 * kHidden + 2 * kScores);
  EXPECT_EQ(saved(eager, kShape, DType::bf16, 0.1, model), 4 * kHidden + 5 * kScores);
  EXPECT_EQ(saved(eager, grouped, DType::bf16, 0, fp32), 4 * kHidden + 6 * kScores);
  EXPECT_EQ(saved(eager, grouped, DType::bf16, 0.1, fp32), 4 * kHidden + 7 * kScores);
  EXPECT_EQ(saved(eager, grouped, DType::fp32, 0, fp32), 8 * kHidden + 4 * kScores);
  EXPECT_EQ(saved(eager, grouped, DType::fp32, 0.1, fp32), 8 * kHidden + 9 * kScores);
}

// SoftmaxBackward0 has a SavedVariable self_ up to PyTorch 1.10: in bf16, whose softmax is of an
// fp32 copy, that copy.
TEST(AttentionSaves, TheSoftmaxsInputAsPyTorch110Did) {
  using enum AttentionKind;
  using enum SoftmaxType;

  EXPECT_EQ(saved(eager_torch_1_10, kShape, DType::fp16, 0.1, model), 4 * kHidden + 7 * kScores);
  EXPECT_EQ(saved(eager_torch_1_10, kShape, DType::fp16, 0, fp32), 4 * kHidden + 8 * kScores);
  EXPECT_EQ(saved(eager_torch_1_10, kShape, DType::bf16, 0, fp32), 4 * kHidden + 10 * kScores);
}

// Forward: q, k, v and their copies but v's, the softmax, its input, in bf16 that in fp32, or its
// cast. Backward: what is saved but v and what multiplied it, d_v, gradients of the softmax's two
// sides, in bf16 both in fp32.
TEST(AttentionPeaks, AreThoseOfPyTorch) {
  const Memory half = measure(AttentionKind::eager, kShape, DType::fp16, SoftmaxType::fp32);
  const Memory bf16 = measure(AttentionKind::eager, kShape, DType::bf16, SoftmaxType::fp32);
  const Memory same = measure(AttentionKind::eager, kShape, DType::fp16, SoftmaxType::model);

  EXPECT_EQ(half.peak_of_forward, 5 * kHidden + (2 + 4 + 2) * kScores);
  EXPECT_EQ(bf16.peak_of_forward, 5 * kHidden + (2 + 4 + 4) * kScores);
  EXPECT_EQ(same.peak_of_forward, 5 * kHidden + (2 + 2) * kScores);
  EXPECT_EQ(half.peak_of_backward, 3 * kHidden + (4 + 4 + 2) * kScores);
  EXPECT_EQ(bf16.peak_of_backward, 3 * kHidden + (4 + 4 + 4) * kScores);
  EXPECT_EQ(same.peak_of_backward, 3 * kHidden + (2 + 2 + 2) * kScores);
}

}  // namespace
}  // namespace dstune::nn::attention_test
