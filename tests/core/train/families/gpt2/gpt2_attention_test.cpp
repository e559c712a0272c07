// GPT-2 with each kind of attention.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/gpt2_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::gpt2_attention_test {
namespace {

struct Outcome {
  double loss = 0;
  std::vector<std::vector<float>> gradients;
};

Outcome outcome_of(const test::Gpt2Fixture& fixture, AttentionKind attention) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  test::RecordingEngine engine(fixture.model, DType::fp32, device);
  const auto gpt2 = family_of(fixture.model)
                        .make_model(fixture.model, engine.parameters(),
                                    {.size = fixture.micro_batch,
                                     .sequence_length = fixture.sequence_length,
                                     .attention = attention},
                                    device);
  const Buffer tokens(device, MemoryCategory::temporaries, fixture.tokens.size() * 8);
  std::memcpy(tokens.data(), fixture.tokens.data(), tokens.size());
  for (std::size_t i = 0; i < fixture.values.size(); ++i) {
    engine.write_parameter(i, fixture.values[i]);
  }
  const Scalar loss(device);
  loss.set_zero();
  gpt2->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());
  const double value = test::read(device, loss);
  gpt2->backward(engine, 1);
  Outcome outcome{value, {}};
  for (std::size_t i = 0; i < fixture.values.size(); ++i) {
    outcome.gradients.push_back(engine.gradient(i));
  }
  return outcome;
}

TEST(Gpt2Attention, EagerIsHuggingFaceToo) {
  const auto fixture = test::read_gpt2_fixture(test::test_data("gpt2_fixture.json"));

  const Outcome eager = outcome_of(fixture, AttentionKind::eager);

  EXPECT_NEAR(eager.loss, fixture.loss, 1e-6 * fixture.loss);
  for (std::size_t i = 0; i < fixture.gradients.size(); ++i) {
    for (std::size_t j = 0; j < fixture.gradients[i].size(); ++j) {
      ASSERT_NEAR(eager.gradients[i][j], fixture.gradients[i][j], 1e-5) << i << ", " << j;
    }
  }
}

/// Bytes that forward leaves for backward, per token, of 2 layers less those of 1.
Bytes saved_by_a_layer(AttentionKind attention, DType dtype, double dropout) {
  constexpr std::int64_t kBatch = 2;
  constexpr std::int64_t kSequence = 64;
  Bytes saved[2];
  for (const std::int64_t layers : {1, 2}) {
    ModelSpec spec;
    spec.vocab_size = 101;
    spec.max_positions = kSequence;
    spec.hidden_size = 96;
    spec.inner_size = 384;
    spec.num_heads = 4;
    spec.num_layers = layers;
    spec.attention_dropout = spec.residual_dropout = dropout;
    DryDevice device(Bytes{1} << 40U);
    test::RecordingEngine engine(spec, dtype, device);
    const auto gpt2 = family_of(spec).make_model(
        spec, engine.parameters(),
        {.size = kBatch, .sequence_length = kSequence, .dtype = dtype, .attention = attention},
        device);
    const Buffer tokens(device, MemoryCategory::parameters, Bytes{8} * kBatch * kSequence);
    const Scalar loss(device);
    gpt2->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());
    saved[layers - 1] = device.memory().use().at(MemoryCategory::activations);
  }
  return (saved[1] - saved[0]) / (kBatch * kSequence);
}

// torch.autograd.graph.saved_tensors_hooks on transformers' GPT2Block, eager without dropout: 5896
// bytes per token in bf16 and 11792 in fp32, whose LayerNorm statistics are 8 and 16 there. With
// dropout its masks are elements on the CPU, bytes on CUDA.
TEST(Gpt2Attention, EagerSavesWhatPyTorchSaves) {
  constexpr Bytes kStatistics = 16;
  constexpr Bytes kHidden = 96;
  constexpr Bytes kScores = 4 * 64;

  EXPECT_EQ(saved_by_a_layer(AttentionKind::eager, DType::bf16, 0), 5896 - 8 + kStatistics);
  EXPECT_EQ(saved_by_a_layer(AttentionKind::eager, DType::fp32, 0), 11792 - 16 + kStatistics);
  EXPECT_EQ(saved_by_a_layer(AttentionKind::eager, DType::fp16, 0.1),
            58 * kHidden + 5 * kScores + kStatistics);
  EXPECT_EQ(saved_by_a_layer(AttentionKind::eager, DType::fp32, 0.1),
            114 * kHidden + 9 * kScores + kStatistics);
  EXPECT_EQ(saved_by_a_layer(AttentionKind::flash, DType::fp16, 0.1),
            58 * kHidden + 4 * 4 + kStatistics);
}

}  // namespace
}  // namespace dstune::gpt2_attention_test
