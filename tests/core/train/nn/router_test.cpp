
#include "core/train/nn/router.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/operations/elementwise.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::nn::router_test {
namespace {

constexpr std::int64_t kRows = 32;

/// Experts of equal rows by a router of four, of which two are chosen.
std::vector<std::int64_t> chosen(std::optional<double> imbalance, std::uint64_t seed) {
  const ModelSpec spec = test::model_of(test::read_family_fixture("mixtral"));
  cpu::CpuDevice device(Bytes{1} << 30U);
  test::RecordingEngine engine(spec, DType::fp32, device);
  for (std::size_t i = 0; i < engine.parameters().tensors.size(); ++i) {
    std::vector<float> values(static_cast<std::size_t>(engine.parameters().tensors[i].numel()));
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>(j % 7);
    engine.write_parameter(i, values);
  }
  const BatchContext work({.size = 1, .sequence_length = kRows}, device);
  Tape tape(work, engine);
  const Router router(ModelNames(engine.parameters()), "model.layers.0.mlp.gate",
                      {.chosen = 2, .imbalance = imbalance});
  const Value x = new_value(device, DType::fp32, kRows, spec.hidden_size);
  device.run(FillConstant{x.tensor(), 1});
  const Routes routes = router(tape, x, seed);
  const auto* const experts = static_cast<const std::int64_t*>(routes.experts.matrix.data);
  return {experts, experts + routes.experts.numel()};
}

TEST(TopKRouter, SendsEqualRowsToTheSameExpertsWhateverTheSeed) {
  const auto experts = chosen(std::nullopt, 1);

  for (std::size_t i = 2; i < experts.size(); ++i) EXPECT_EQ(experts[i], experts[i - 2]);
  EXPECT_EQ(chosen(std::nullopt, 2), experts);
}

TEST(TopKRouter, DrawsExpertsByTheSeedWhereItIsToldTo) {
  const auto experts = chosen(0, 1);

  EXPECT_EQ(chosen(0, 1), experts);
  EXPECT_NE(chosen(0, 2), experts);
  EXPECT_NE(chosen(2, 1), experts);
}

}  // namespace
}  // namespace dstune::nn::router_test
