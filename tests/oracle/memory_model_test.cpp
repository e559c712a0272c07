#include "tests/oracle/memory_model.hpp"

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::oracle::memory_model_test {
namespace {

// The first table of memory_model.hpp.
TEST(PredictModelStates, ResidentBytesAreTheTables) {
  const auto parameters = make_model_parameters(test::tiny_model());
  const auto total = static_cast<Bytes>(parameters.total());
  StepConfig config;
  config.dtype = DType::bf16;
  config.optimizer.client = false;
  config.reduce_bucket_size = 1000;
  const auto resident = [&](int stage) {
    config.stage = stage;
    return predict_model_states(config, parameters, 2, 0).resident;
  };
  Bytes shards = 0;
  for (const auto& tensor : parameters.tensors) {
    shards += (static_cast<Bytes>(tensor.numel()) + 1) / 2;
  }
  const Bytes padded = (total + 3) / 4 * 4;

  EXPECT_EQ(resident(0), (MemoryUse{{2 * total, 0, 12 * total, 0, 0, 0}}));
  EXPECT_EQ(resident(1), (MemoryUse{{2 * padded, 0, 6 * padded, 0, 0, 0}}));
  EXPECT_EQ(resident(2), resident(1));
  config.grad_accum_dtype = DType::fp32;
  EXPECT_EQ(resident(1), (MemoryUse{{2 * padded, 4 * padded, 6 * padded, 0, 0, 0}}));
  EXPECT_EQ(resident(2), (MemoryUse{{2 * padded, 0, 6 * padded, 0, 0, 0}}));
  config.grad_accum_dtype.reset();
  config.param_persistence_threshold = 0;
  EXPECT_EQ(resident(3), (MemoryUse{{2 * shards, 2 * shards, 12 * shards, 2000, 0, 0}}));
  config.param_persistence_threshold = 1000;  // all tensors; padded to two shards each
  EXPECT_EQ(resident(3), (MemoryUse{{6 * shards, 2 * shards, 12 * shards, 2000, 0, 0}}));
  config.contiguous_gradients = false;
  config.grad_accum_dtype = DType::fp32;
  EXPECT_EQ(resident(3), (MemoryUse{{6 * shards, 4 * shards, 12 * shards, 0, 0, 0}}));
}

// docs/deepspeed-step.md, "Memory of gpt2": GB in the update, in bf16, without activations.
TEST(PredictModelStates, GivesTheReferenceValuesOfGpt2) {
  const auto parameters = make_model_parameters(ModelSpec{});
  StepConfig config;
  config.dtype = DType::bf16;
  config.optimizer.client = false;
  const auto count = static_cast<double>(parameters.total());
  const auto in_step = [&](int stage, int ranks) {
    config.stage = stage;
    const auto resident = predict_model_states(config, parameters, ranks, 0).resident.total();
    // On top: all gradients and 8 bytes of fp32 copies; a rank's gradients, flattened, and in fp32;
    // in stage 3 the gradients are resident.
    const double more = stage == 0 ? 10 * count : (stage == 3 ? 6 : 8) * count / ranks;
    return (static_cast<double>(resident) + more) / 1e9;
  };

  EXPECT_NEAR(in_step(0, 1), 2.99, 0.005);
  EXPECT_NEAR(in_step(1, 1), 2.74, 0.005);
  EXPECT_NEAR(in_step(1, 8), 0.56, 0.005);
  EXPECT_NEAR(in_step(2, 8), 0.56, 0.005);
  EXPECT_NEAR(in_step(3, 1), 3.74, 0.005);
  EXPECT_NEAR(in_step(3, 8), 1.34, 0.005);
}

}  // namespace
}  // namespace dstune::oracle::memory_model_test
