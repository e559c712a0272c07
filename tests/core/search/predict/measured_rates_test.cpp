#include "core/search/predict/measured_rates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/train/measure_machine.hpp"
#include "tests/support/scripted_pool.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::measured_rates_test {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;

class MeasuredRates : public testing::Test {
 protected:
  RunRates run(const ScriptedPool::Script& script, Journal::Mode mode, int workers = 2) {
    ScriptedPool pool(workers_on("node", 1, workers), script);
    Journal journal(directory_ / "journal.jsonl", mode,
                    {to_json(config_.settings.model), "cpu", "simulated"});
    Scheduler scheduler(pool, journal, {}, {});
    RunRates rates = measured_rates(config_, 2, scheduler);
    started_ = pool.names();
    return rates;
  }

  static Outcome measure(const Experiment& experiment) {
    Measured measured;
    const DType dtype = make_step_config(experiment).dtype;
    if (experiment.measures_machine) {
      measured.machine_rates = {.flops_per_s = 42, .copy_bytes_per_s = 1, .dtype = dtype};
      measured.machine_rates->collectives.fill({.latency = 1, .bytes_per_s = 1});
    }
    return measured;
  }

  const MemoryDirectory directory_;
  TuningConfig config_ = make_tuning_config(1000);
  std::vector<std::string> started_;
};

TEST_F(MeasuredRates, AreTheGroups) {
  EXPECT_DOUBLE_EQ(run(measure, Journal::Mode::create).of(DType::fp32).flops_per_s, 42);
  EXPECT_THAT(started_, ElementsAre("machine"));
}

TEST_F(MeasuredRates, AreMeasuredOnce) {
  run(measure, Journal::Mode::create);

  EXPECT_DOUBLE_EQ(run(measure, Journal::Mode::resume).of(DType::fp32).flops_per_s, 42);
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(MeasuredRates, AreEstimatedWhereNobodyCouldMeasure) {
  const auto fail = [](const Experiment&) -> Outcome { return Failed{FailureKind::error, "no"}; };

  EXPECT_EQ(run(fail, Journal::Mode::create), estimated_rates(config_.settings));
}

TEST_F(MeasuredRates, AreThoseOfEveryGroupAtOnce) {
  run(measure, Journal::Mode::create, 5);
  EXPECT_THAT(started_, ElementsAre("machine", "machine_again1"));

  run(measure, Journal::Mode::resume, 6);
  EXPECT_THAT(started_, ElementsAre("machine_again2")) << "the others are in the journal";
}

std::vector<std::string> messages_asked(const Experiment& machine) {
  std::vector<std::string> all;
  const json::value* const asked = machine.ds_config.json().if_contains("dstune_messages");
  if (asked == nullptr) return all;
  for (const json::value& value : asked->as_array()) {
    const GroupMessage message = group_message_from_json(value.as_object());
    all.push_back(concat(name_of(message.kind), " ", name_of(message.dtype), " ", message.ranks,
                         " ", message.spacing));
  }
  return all;
}

AxisGroup axis(const std::string& pointer, std::vector<json::value> values) {
  return {{{.pointer = pointer, .values = std::move(values)}}};
}

TEST_F(MeasuredRates, KnowNoOtherMessagesWhereTheSpaceSendsNone) {
  config_.space.all_stages = {axis("/zero_optimization/reduce_bucket_size", {1000, 2000})};

  const auto machines = machine_experiments(config_, 2, 1);

  ASSERT_EQ(machines.size(), 1U);
  EXPECT_THAT(messages_asked(machines.front()), IsEmpty());
}

TEST_F(MeasuredRates, KnowThePartsOfTheGroupThatAnyConfigurationSendsThrough) {
  config_.space.of_stage[3] = {axis("/zero_optimization/zero_hpz_partition_size", {1, 2, 4})};

  const auto machines = machine_experiments(config_, 8, 1);

  ASSERT_EQ(machines.size(), 1U);
  EXPECT_THAT(messages_asked(machines.front()),
              ElementsAre("all_gather fp32 2 1", "all_gather fp32 4 1"));
}

TEST_F(MeasuredRates, AskForTheHostOnlyWhereAConfigurationOffloads) {
  const auto asked = [this] {
    std::vector<std::string> names;
    for (const Experiment& machine : machine_experiments(config_, 2, 2)) {
      if (asks_for_host(machine)) names.push_back(machine.name);
    }
    return names;
  };
  config_.space.all_stages = {axis("/zero_optimization/reduce_bucket_size", {1000, 2000})};
  EXPECT_THAT(asked(), IsEmpty());

  config_.space.all_stages.push_back(axis("/zero_optimization/offload_optimizer/device", {"none"}));
  EXPECT_THAT(asked(), IsEmpty());

  config_.space.all_stages.back() =
      axis("/zero_optimization/offload_optimizer/device", {"none", "cpu"});
  config_.space.all_stages.push_back({{{.pointer = "/bf16/enabled", .values = {false, true}}}});
  EXPECT_THAT(asked(), ElementsAre("machine", "machine_again1")) << "once for both types";

  config_.stages = {3};
  config_.space.all_stages = {axis("/zero_optimization/offload_param/device", {"none", "cpu"})};
  EXPECT_THAT(asked(), ElementsAre("machine", "machine_again1")) << "parameters alone";
}

TEST_F(MeasuredRates, AreMeasuredAnewWhereAJournalHasNoneOfTheHost) {
  run(measure, Journal::Mode::create);
  config_.space.all_stages = {axis("/zero_optimization/offload_optimizer/device", {"none", "cpu"})};
  const auto with_host = [](const Experiment& experiment) {
    Outcome outcome = measure(experiment);
    std::get<Measured>(outcome).machine_rates->host = HostRates{.passes = {{1, 7}}};
    return outcome;
  };

  const RunRates rates = run(with_host, Journal::Mode::resume);

  EXPECT_THAT(started_, ElementsAre("machine"));
  EXPECT_NEAR(rates.host().value().pass_bytes_per_s(1), 7, 1e-9);
}

TEST_F(MeasuredRates, KnowEveryTypeOfModel) {
  config_.space.all_stages = {{{{.pointer = "/bf16/enabled", .values = {false, true}}}}};

  const auto machines = machine_experiments(config_, 2, 2);

  std::vector<std::string> names;
  for (const Experiment& machine : machines) names.push_back(machine.name);
  EXPECT_THAT(names,
              ElementsAre("machine", "machine_again1", "machine_bf16", "machine_bf16_again1"));
  EXPECT_EQ(make_step_config(machines.front()).dtype, DType::fp32);
  EXPECT_EQ(make_step_config(machines.back()).dtype, DType::bf16);
}

}  // namespace
}  // namespace dstune::measured_rates_test
