#include "core/train/check_machine.hpp"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::check_machine_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Experiment preflight(int ranks) {
  Experiment experiment = test::TinyExperiment{.ranks = ranks}.make();
  experiment.settings.memory_limit = Bytes{1} << 22U;
  make_preflight(experiment, {"a: 4 workers"});
  return experiment;
}

/// Collectives in which what the rank `sick` of the whole group sends arrives with a wrong number.
class WrongCollectives final : public Collectives {
 public:
  WrongCollectives(Device& device, std::unique_ptr<Collectives> inner, std::vector<int> members,
                   int sick)
      : Collectives(device, inner->rank(), inner->size()),
        inner_(std::move(inner)),
        members_(std::move(members)),
        sick_(sick) {}

 private:
  void do_all_reduce(Tensor inout, ReduceOp op) override {
    inner_->all_reduce(inout, op, Purpose::other);
    if (size() > 2) spoil(inout);
  }
  void do_reduce(Tensor, ReduceOp, int) override {}
  void do_reduce_scatter(Tensor, Tensor, ReduceOp) override {}
  void do_all_gather(Tensor in, Tensor out) override {
    inner_->all_gather(in, out, Purpose::other);
    for (int place = 0; place < size(); ++place) {
      if (members_[static_cast<std::size_t>(place)] == sick_ && place != rank()) {
        spoil(out.slice(place * in.numel, in.numel));
      }
    }
  }
  void do_broadcast(Tensor, int) override {}
  void do_all_to_all(Tensor, Tensor) override {}
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int) override {
    return std::make_unique<WrongCollectives>(device(), inner_->sub_group(ranks), ranks, sick_);
  }

  void spoil(Tensor tensor) {
    if (sick_ < 0) return;
    const float wrong = 77;
    device().write({&wrong, 1}, tensor.slice(tensor.numel - 1, 1));
  }

  std::unique_ptr<Collectives> inner_;
  std::vector<int> members_;
  int sick_;
};

/// The outcome of a preflight on threads, in which `sick` sends wrong numbers; -1: nobody does.
Outcome check(int ranks, int sick) {
  const Experiment experiment = preflight(ranks);
  Outcome outcome;
  test::run_on_ranks(ranks, [&](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(experiment.settings.memory_limit);
    std::vector<int> all;
    for (int i = 0; i < ranks; ++i) all.push_back(i);
    WrongCollectives collectives(
        device, std::make_unique<test::ThreadCollectives>(device, team, rank), all, sick);
    test::ThreadGroup group(team, rank);

    Outcome own = run_experiment(experiment, device, collectives, group);

    EXPECT_EQ(device.memory().in_use(), 0U);
    if (rank == 0) outcome = std::move(own);
  });
  return outcome;
}

TEST(CheckMachine, MeasuresEachRankAndEachPair) {
  const Outcome outcome = check(3, -1);

  ASSERT_TRUE(std::holds_alternative<Measured>(outcome)) << describe(outcome);
  const MachineCheck& found = std::get<Measured>(outcome).machine_check.value();
  ASSERT_THAT(found.ranks, SizeIs(3));
  for (const RankCheck& rank : found.ranks) {
    EXPECT_GT(rank.flops_per_s, 0);
    EXPECT_GT(rank.copy_bytes_per_s, 0);
    EXPECT_GE(rank.jitter, 0);
  }
  ASSERT_THAT(found.pairs, SizeIs(3));
  for (const PairCheck& pair : found.pairs) EXPECT_GT(pair.rate.latency, 0);
  EXPECT_GT(found.ring.latency, 0);
}

TEST(CheckMachine, NamesTheRankWhoseBytesArriveWrong) {
  const Outcome outcome = check(4, 2);

  ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
  const Failed& failed = std::get<Failed>(outcome);
  EXPECT_EQ(failed.kind, FailureKind::wrong_sums);
  EXPECT_THAT(failed.reason, AllOf(HasSubstr("bytes of rank 2 on "), HasSubstr("arrived wrong on"),
                                   HasSubstr("77 instead of ")));
}

TEST(CheckMachine, NamesBothEndsWhereThereAreOnlyTwo) {
  const Outcome outcome = check(2, 1);

  ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
  EXPECT_THAT(std::get<Failed>(outcome).reason,
              AllOf(HasSubstr("bytes of rank 1 on "), HasSubstr("arrived wrong on rank 0 on "),
                    Not(HasSubstr("has a part"))));
}

TEST(CheckMachine, FindsNothingInVirtualTime) {
  const Experiment experiment = preflight(1);
  sim::SimDevice device(experiment.settings.memory_limit);
  sim::SimCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  const Outcome outcome = check_machine(experiment, device, collectives, group);

  ASSERT_TRUE(std::holds_alternative<Measured>(outcome)) << describe(outcome);
  const auto& found = std::get<Measured>(outcome).machine_check.value();
  EXPECT_NEAR(found.ranks.at(0).jitter, 0, 1e-9);
}

TEST(CheckMachine, NeedsMemory) {
  Experiment experiment = preflight(1);
  experiment.settings.memory_limit = 100'000;
  sim::SimDevice device(10);
  sim::SimCollectives collectives(device, 0, 1);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  EXPECT_TRUE(
      std::holds_alternative<Skipped>(check_machine(experiment, device, collectives, group)));
}

TEST(CheckMachine, IsReadBackAsItWasWritten) {
  Measured measured;
  measured.machine_check = {
      {{4.5e10, 9e9, 0.03}, {4.4e10, 8e9, 0.02}}, {{0, 1, {1e-5, 2e9}}}, {2e-5, 1.5e9}};

  const Outcome again = outcome_from_json(to_json(Outcome(measured)));

  EXPECT_EQ(std::get<Measured>(again).machine_check, measured.machine_check);
}

}  // namespace
}  // namespace dstune::check_machine_test
