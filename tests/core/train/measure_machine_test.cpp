#include "core/train/measure_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::measure_machine_test {
namespace {

Experiment machine(int ranks) {
  const json::object not_modelled = {{"offload_optimizer", {{"device", "cpu"}}}};
  Experiment experiment = test::TinyExperiment{.ranks = ranks, .zero = not_modelled}.make();
  experiment.settings.memory_limit = Bytes{1} << 22U;
  experiment.measures_machine = true;
  return experiment;
}

TEST(ProductShapes, AreThoseOfTheModelsMatrices) {
  ModelParameters model;
  model.tensors = {{.name = "weight", .shape = {8, 24}}, {.name = "bias", .shape = {24}}};

  EXPECT_THAT(product_shapes(model, 100),
              testing::UnorderedElementsAre(MatrixShape{100, 24, 8}, MatrixShape{100, 8, 24},
                                            MatrixShape{8, 24, 100}));
}

TEST(ProductShapes, StandOnceAndShortOnesFirst) {
  ModelParameters model;
  model.tensors = {{.name = "a", .shape = {8, 32}},
                   {.name = "b", .shape = {8, 8}},
                   {.name = "c", .shape = {8, 32}}};

  const auto shapes = product_shapes(model, 4);

  EXPECT_THAT(shapes, testing::ElementsAre(MatrixShape{4, 8, 8}, MatrixShape{8, 8, 4},
                                           MatrixShape{4, 32, 8}, MatrixShape{4, 8, 32},
                                           MatrixShape{8, 32, 4}));
}

TEST(MeasureMachine, IsAnExperimentOfItsOwn) {
  const Experiment experiment = machine(2);
  test::run_on_ranks(2, [&](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(experiment.settings.memory_limit);
    test::ThreadCollectives collectives(device, team, rank);
    test::ThreadGroup group(team, rank);

    const Outcome outcome = run_experiment(experiment, device, collectives, group);

    const auto& rates = std::get<Measured>(outcome).machine_rates;
    ASSERT_TRUE(rates);
    EXPECT_GT(rates->flops_per_s, 0);
    EXPECT_GT(rates->at(CollectiveKind::all_gather).bytes_per_s, 0);
    EXPECT_EQ(device.memory().in_use(), 0U);
    EXPECT_GT(group.polls, 0);
  });
}

TEST(MeasureMachine, KnowsTheModelsProducts) {
  const Experiment experiment = machine(1);
  sim::SimDevice device(experiment.settings.memory_limit);
  sim::SimCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  const Outcome outcome = measure_machine(experiment, device, collectives, group);

  const auto& rates = std::get<Measured>(outcome).machine_rates.value();
  const auto& settings = experiment.settings;
  const auto shapes =
      product_shapes(make_model_parameters(settings.model), 4 * settings.sequence_length);
  for (const MatrixShape& shape : shapes) {
    EXPECT_THAT(rates.matrices, testing::Contains(testing::Field(&MatrixRate::shape, shape)));
  }
}

/// What rank 0 of one measures, and the number of its copies between device and host.
std::pair<MachineRates, std::size_t> measure_simulated(const Experiment& experiment) {
  sim::SimDevice device(experiment.settings.memory_limit);
  sim::SimCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);
  const Outcome outcome = measure_machine(experiment, device, collectives, group);
  return {std::get<Measured>(outcome).machine_rates.value(), device.ledger().transfers().size()};
}

TEST(MeasureMachine, LeavesTheHostAloneUnlessItIsAskedFor) {
  const auto [rates, copies] = measure_simulated(machine(1));

  EXPECT_FALSE(rates.host);
  EXPECT_EQ(copies, 0U);
}

TEST(MeasureMachine, MeasuresTheHostIfItIsAskedFor) {
  Experiment experiment = machine(1);
  ask_for_host(experiment);
  ASSERT_TRUE(asks_for_host(experiment));

  const auto [rates, copies] = measure_simulated(experiment);

  ASSERT_TRUE(rates.host);
  EXPECT_NEAR(rates.host->pass_bytes_per_s(1), 25e9, 1e6);
  EXPECT_GT(copies, 0U);
}

TEST(MeasureMachine, NeedsMemory) {
  Experiment experiment = machine(1);
  experiment.settings.memory_limit = 100'000;
  sim::SimDevice device(experiment.settings.memory_limit);
  sim::SimCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  EXPECT_TRUE(
      std::holds_alternative<OutOfMemory>(measure_machine(experiment, device, collectives, group)));
}

}  // namespace
}  // namespace dstune::measure_machine_test
