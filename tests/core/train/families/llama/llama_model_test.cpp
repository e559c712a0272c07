#include "core/train/families/llama/llama_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::llama_model_test {
namespace {

using test::FamilyFixture;

constexpr double kDropout = 0.25;
constexpr std::uint64_t kSeed = 7;

/// A micro-step of a fixture's model, with dropout.
class DroppingRun {
 public:
  explicit DroppingRun(const FamilyFixture& fixture)
      : spec_(test::model_of(fixture, kDropout)),
        engine(spec_, DType::fp32, device_),
        model_(family_of(spec_).make_model(
            spec_, engine.parameters(),
            {.size = fixture.micro_batch, .sequence_length = fixture.sequence_length}, device_)),
        tokens_(device_, MemoryCategory::temporaries, fixture.tokens.size() * 8) {
    std::memcpy(tokens_.data(), fixture.tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      engine.write_parameter(i, fixture.parameters[i].values);
    }
  }

  double forward() {
    const Scalar loss(device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), kSeed, loss.tensor());
    return test::read(device_, loss);
  }
  void backward() { model_->backward(engine, 1); }

 private:
  cpu::CpuDevice device_{Bytes{1} << 30U};
  ModelSpec spec_;

 public:
  test::RecordingEngine engine;

 private:
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

class LlamaDropout : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kin, LlamaDropout, testing::Values("gemma2", "phi3"),
                         [](const auto& param_info) { return param_info.param; });

// A central difference along the tensor's own gradient: transformers' masks are not ours.
TEST_P(LlamaDropout, GradientsAreThoseOfFiniteDifferences) {
  const FamilyFixture fixture = test::read_family_fixture(GetParam());
  DroppingRun run(fixture);
  EXPECT_GT(std::abs(run.forward() - fixture.loss), 1e-4);  // something drops out
  run.backward();
  for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
    const std::vector<float> gradient = run.engine.gradient(i);
    const double norm = norm_of(gradient);
    const double step = 1e-3 / std::max(norm, 0.1);
    const auto loss_at = [&](double distance) {
      std::vector<float> moved = fixture.parameters[i].values;
      for (std::size_t k = 0; k < moved.size(); ++k) {
        moved[k] = static_cast<float>(static_cast<double>(moved[k]) +
                                      distance * static_cast<double>(gradient[k]) / norm);
      }
      DroppingRun other(fixture);
      other.engine.write_parameter(i, moved);
      return other.forward();
    };

    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);

    EXPECT_NEAR(slope, norm, 2e-3 * norm + 1e-4) << fixture.parameters[i].name;
  }
}

/// Activations at the end of forward.
Bytes kept(const FamilyFixture& fixture, AttentionKind attention) {
  DryDevice device(Bytes{1} << 30U);
  const ModelSpec spec = test::model_of(fixture);
  test::RecordingEngine engine(spec, DType::bf16, device);
  const auto model = family_of(spec).make_model(spec, engine.parameters(),
                                                {.size = fixture.micro_batch,
                                                 .sequence_length = fixture.sequence_length,
                                                 .dtype = DType::bf16,
                                                 .attention = attention},
                                                device);
  const Buffer tokens(device, MemoryCategory::temporaries, fixture.tokens.size() * 8);
  const Scalar loss(device);
  model->forward(engine, tokens.tensor(DType::int64), kSeed, loss.tensor());
  return device.memory().use().at(MemoryCategory::activations);
}

TEST(Llama, Gemma2IsEagerWhereSdpaIsAskedForCapOrNot) {
  FamilyFixture fixture = test::read_family_fixture("gemma2");
  fixture.config["attn_logit_softcapping"] = nullptr;

  EXPECT_EQ(kept(fixture, AttentionKind::sdpa), kept(fixture, AttentionKind::eager));
  EXPECT_LT(kept(fixture, AttentionKind::flash), kept(fixture, AttentionKind::eager));
}

}  // namespace
}  // namespace dstune::llama_model_test
