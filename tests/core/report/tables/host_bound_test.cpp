#include "core/report/tables/host_bound.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/tables/explain.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::host_bound_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_experiment;
using testing_support::make_measured;

Experiment on(const std::string& backend, std::int64_t accumulation) {
  Experiment experiment = make_experiment(3, 4, accumulation);
  experiment.settings.backend = backend;
  return experiment;
}

/// A step of 100 ms.
Measured with_host(const std::vector<HostLine>& lines) {
  Measured measured = make_measured(40);
  for (const HostLine& line : lines) {
    measured.ledger.add_host(line.event, line.time, line.calls);
    measured.ledger.add_idle(line.event, line.idle);
  }
  return measured;
}

/// Of which the device idles 65.
Measured waiting_for_the_host() {
  return with_host({{HostEvent::operator_forward, 100, 0.025, 0.02},
                    {HostEvent::operator_backward, 100, 0.015, 0.01},
                    {HostEvent::module_call, 30, 0.012, 0.01},
                    {HostEvent::sub_module_hook, 60, 0.015, 0.015},
                    {HostEvent::gathered_tensor, 20, 0.005, 0.005},
                    {HostEvent::gradient_hook, 10, 0.008, 0.005}});
}

TEST(HostBound, SaysWhatTheDeviceWaitsAndWhatEachRemedyMaySave) {
  const std::string text = host_bound_text(on("sim", 4), waiting_for_the_host());

  EXPECT_THAT(text, HasSubstr("Bound by the host: 65.00 ms of the step, 65.0 %, the device waits"));
  EXPECT_THAT(text,
              ContainsRegex("micro-batch 8, accumulation 2: the same batch *[|] *40.00 [|] 40.0 "));
  EXPECT_THAT(text, ContainsRegex("torch.compile: .* of eager PyTorch *[|] *52.00 [|] 52.0 "));
  EXPECT_THAT(text, ContainsRegex("half as many modules *[|] *13.50 [|] 13.5 "));
}

TEST(HostBound, LargerMicroBatchesSaveWhatEachMicroStepTakesOnce) {
  const Measured measured = with_host({{HostEvent::micro_step, 4, 0.04, 0.04}});

  EXPECT_THAT(host_bound_text(on("sim", 4), measured), ContainsRegex("[|] *20.00 [|] 20.0 "));
}

TEST(HostBound, AnAccumulationIsDividedWithoutRest) {
  EXPECT_THAT(host_bound_text(on("sim", 9), waiting_for_the_host()),
              HasSubstr("micro-batch 12, accumulation 3: the same batch"));
  EXPECT_THAT(host_bound_text(on("sim", 9), waiting_for_the_host()), HasSubstr("53.33 | 53.3 |"));
}

TEST(HostBound, NothingSavesMoreThanTheWaits) {
  const Measured measured = with_host(
      {{HostEvent::operator_forward, 9, 0.08, 0}, {HostEvent::gradient_hook, 9, 0.02, 0.02}});

  EXPECT_THAT(host_bound_text(on("sim", 1), measured),
              ContainsRegex("torch.compile: .* *[|] *20.00 [|] 20.0 "));
}

TEST(HostBound, WithoutAccumulationTheSameTimeIsThatOfTwiceAsManySamples) {
  EXPECT_THAT(host_bound_text(on("sim", 1), waiting_for_the_host()),
              AllOf(HasSubstr("micro-batch 8: twice the batch"), HasSubstr("32.50 | 32.5 |")));
}

TEST(HostBound, OnACpuNothingHidesTheHostsCode) {
  EXPECT_THAT(host_bound_text(on("cpu", 1), waiting_for_the_host()),
              AllOf(HasSubstr("80.00 ms of the step, 80.0 %, are the training's host code"),
                    HasSubstr("40.00 | 40.0 |"), HasSubstr("52.00 | 52.0 |")));
}

TEST(HostBound, AStepThatHidesTheHostsCodeIsNot) {
  EXPECT_EQ(
      host_bound_text(on("sim", 1), with_host({{HostEvent::operator_forward, 9, 0.08, 0.009}})),
      "");
  EXPECT_NE(
      host_bound_text(on("sim", 1), with_host({{HostEvent::operator_forward, 9, 0.08, 0.011}})),
      "");
}

TEST(HostBound, RemediesThatSaveNothingAreNotNamed) {
  EXPECT_THAT(
      host_bound_text(on("sim", 2), with_host({{HostEvent::optimizer_tensor, 9, 0.05, 0.05}})),
      AllOf(HasSubstr("Bound by the host"), Not(HasSubstr("what would move it"))));
}

TEST(HostBound, ADryRunIsNotJudged) {
  Measured dry = waiting_for_the_host();
  dry.step_time = {};

  EXPECT_EQ(host_bound_text(on("sim", 1), dry), "");
}

TEST(HostBound, TheAccountHasIt) {
  EXPECT_THAT(explain(on("sim", 1), waiting_for_the_host()), HasSubstr("\nBound by the host: "));
}

}  // namespace
}  // namespace dstune::host_bound_test
