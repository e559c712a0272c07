#include "tests/oracle/activation_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::oracle::activation_memory_test {
namespace {

constexpr Bytes kUnlimited = Bytes{1} << 50U;

ModelSpec make_spec(std::int64_t vocab, std::int64_t hidden, std::int64_t inner,
                    std::int64_t layers, std::int64_t heads) {
  ModelSpec spec;
  spec.vocab_size = vocab;
  spec.max_positions = 2048;
  spec.hidden_size = hidden;
  spec.inner_size = inner;
  spec.num_layers = layers;
  spec.num_heads = heads;
  return spec;
}

// Tells when activations and temporaries together are at their highest.
class PeakDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;
  Bytes peak = 0;
  Bytes now_in_use() const {
    return memory().use().at(MemoryCategory::activations) +
           memory().use().at(MemoryCategory::temporaries);
  }

 private:
  // Every buffer is used by an operation before any is freed.
  void account(const Work& /*work*/) override { peak = std::max(peak, now_in_use()); }
};

ActivationMemory measure(const ModelSpec& spec, std::int64_t micro_batch, std::int64_t sequence,
                         DType dtype, const Device* imitated) {
  PeakDevice device(kUnlimited, imitated);
  test::RecordingEngine engine(spec, dtype, device);
  const auto gpt2 =
      family_of(spec).make_model(spec, engine.parameters(), {micro_batch, sequence, dtype}, device);
  const Buffer tokens(device, MemoryCategory::parameters,
                      static_cast<Bytes>(8 * micro_batch * sequence));
  const Scalar loss(device);
  gpt2->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());
  ActivationMemory result{.saved = device.now_in_use()};
  gpt2->backward(engine, 1);
  result.peak = device.peak;
  return result;
}

using Shape = std::tuple<ModelSpec, std::int64_t, std::int64_t>;

class PredictActivations : public testing::TestWithParam<std::tuple<Shape, DType, double, bool>> {};

TEST_P(PredictActivations, EqualsWhatIsAllocated) {
  auto [shape, dtype, dropout, with_scratch] = GetParam();
  auto& [spec, micro_batch, sequence] = shape;
  spec.embedding_dropout = spec.attention_dropout = spec.residual_dropout = dropout;
  const cpu::CpuDevice cpu(0);
  const std::int64_t scratch = with_scratch
                                   ? cpu.attention_workspace({.batch = micro_batch,
                                                              .sequence = sequence,
                                                              .heads = spec.num_heads,
                                                              .kv_heads = spec.num_heads,
                                                              .head_size = spec.head_size()})
                                   : 0;

  const ActivationMemory measured =
      measure(spec, micro_batch, sequence, dtype, with_scratch ? &cpu : nullptr);

  const ActivationMemory predicted =
      predict_activations(spec, micro_batch, sequence, dtype, scratch);
  EXPECT_EQ(predicted.saved, measured.saved);
  EXPECT_EQ(predicted.peak, measured.peak);
}

// One shape for each moment that can be the highest: vocabulary, hidden size, inner size,
// attention.
INSTANTIATE_TEST_SUITE_P(
    Shapes, PredictActivations,
    testing::Combine(testing::Values(Shape{make_spec(5003, 96, 384, 2, 12), 2, 128},
                                     Shape{make_spec(1, 64, 256, 1, 4), 3, 8},
                                     Shape{make_spec(2, 16, 4096, 2, 2), 1, 16},
                                     Shape{make_spec(3, 64, 1, 1, 1), 2, 1},
                                     Shape{make_spec(5, 4, 1, 3, 2), 1, 2048},
                                     Shape{make_spec(101, 32, 128, 2, 4), 2, 12}),
                     testing::Values(DType::fp32, DType::bf16, DType::fp16),
                     testing::Values(0.0, 0.1), testing::Bool()));

// docs/deepspeed-step.md, "What a block keeps": GPT-2's rows. Without dropout the two residual
// masks of h bytes each are missing.
TEST(PredictActivationsPerLayer, EqualsTheTableOfPyTorch) {
  const auto per_layer = [](DType dtype, double dropout) {
    ModelSpec one = make_spec(50257, 768, 3072, 1, 12);
    one.residual_dropout = dropout;
    ModelSpec two = one;
    two.num_layers = 2;
    return (predict_activations(two, 2, 64, dtype).saved -
            predict_activations(one, 2, 64, dtype).saved) /
           128;
  };

  EXPECT_EQ(per_layer(DType::bf16, 0), 56 * 768 + 4 * 12 + 16);
  EXPECT_EQ(per_layer(DType::fp16, 0.1), 58 * 768 + 4 * 12 + 16);
  EXPECT_EQ(per_layer(DType::fp32, 0), 112 * 768 + 4 * 12 + 16);
  EXPECT_EQ(per_layer(DType::fp32, 0.1), 114 * 768 + 4 * 12 + 16);
}

// docs/deepspeed-step.md, "Loss", with the Trainer: 12 V per token at the peak in either precision,
// on top of the layers and of ln_f (input, output, statistics), which all still live, as do the
// positions, once for all sequences. The labels are gone.
TEST(PredictActivationsOfHead, PeakIsTwelveBytesPerTokenAndWord) {
  const ModelSpec spec = make_spec(50257, 768, 3072, 12, 12);
  constexpr Bytes kRows = 2 * 64;
  constexpr Bytes kPositions = 8 * 64;
  const Bytes half = 12 * (56 * 768 + 4 * 12 + 16) + 2 * 2 * 768 + 8;
  const Bytes full = 12 * (112 * 768 + 4 * 12 + 16) + 2 * 4 * 768 + 8;

  EXPECT_EQ(predict_activations(spec, 2, 64, DType::bf16).peak,
            kRows * (half + 12 * 50257) + kPositions);
  EXPECT_EQ(predict_activations(spec, 2, 64, DType::fp32).peak,
            kRows * (full + 12 * 50257) + kPositions);
}

}  // namespace
}  // namespace dstune::oracle::activation_memory_test
