#include "core/device/rates/measure_host_rates.hpp"

#include <map>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "core/device/dry/clocked_device.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::measure_host_rates_test {
namespace {

constexpr Bytes kPlenty = Bytes{1} << 30U;

/// Which ranks copied between two meetings of the group.
struct Traffic {
  std::mutex mutex;
  std::map<int, std::set<int>> ranks_by_round;

  void add(int round, int rank) {
    const std::lock_guard lock(mutex);
    ranks_by_round[round].insert(rank);
  }
  int ranks_in(int round) const {
    const auto found = ranks_by_round.find(round);
    return found == ranks_by_round.end() ? 1 : static_cast<int>(found->second.size());
  }
};

/// A group that knows how often it has met.
class CountedGroup final : public Group {
 public:
  CountedGroup(test::ThreadTeam& team, int rank) : group_(team, rank) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void broadcast(std::span<std::byte> data, int root) override { group_.broadcast(data, root); }
  bool vote(bool ok) override {
    if (++round == aborted_in) throw ExperimentAborted("aborted");
    return group_.vote(ok);
  }
  std::vector<std::string> gather(const std::string& text) override { return group_.gather(text); }
  void poll() override { group_.poll(); }

  int round = 0;
  int aborted_in = 0;  ///< 0: never

 private:
  test::ThreadGroup group_;
};

/// Copies at 8 GB/s to the host and at 4 to the device, divided by the ranks that copied in the
/// same round of `before`; the slope of rank 1 is half as fast as that. A pass has 3 GB/s for each
/// thread, up to 10.
class SharedLink final : public ClockedDevice {
 public:
  SharedLink(const CountedGroup& group, const Traffic& before, Traffic& now)
      : ClockedDevice(kPlenty), group_(group), before_(before), now_traffic_(now) {}

  bool overlaps() const override { return true; }
  int host_threads() const override { return 6; }
  void limit_host_threads(int most) override { threads = most; }

  int threads = 6;

 private:
  void account_on_host(const Work& work) override {
    const auto bytes = static_cast<double>(work.read_bytes() + work.written_bytes());
    advance_host(bytes / std::min(threads * 3e9, 10e9));
  }
  void do_transfer(const HostTransfer& copy) override {
    now_traffic_.add(group_.round, group_.rank());
    const double rate = copy.direction == Transfer::device_to_host ? 8e9 : 4e9;
    const double share = rate / before_.ranks_in(group_.round) / (group_.rank() == 1 ? 2 : 1);
    const Seconds latency = copy.tier == Tier::pinned ? 5e-6 : 20e-6;
    advance(latency + static_cast<double>(copy.from.size()) / share);
  }

  const CountedGroup& group_;
  const Traffic& before_;
  Traffic& now_traffic_;
};

/// What rank 1 of `ranks` measures on a link that all share.
HostRates on_shared_link(int ranks) {
  HostRates result;
  Traffic before;
  Traffic now;
  // The first time shows who copies together, which then takes longer.
  for (int time = 0; time < 2; ++time) {
    test::run_on_ranks(ranks, [&](int rank, test::ThreadTeam& team) {
      CountedGroup group(team, rank);
      SharedLink device(group, before, now);
      const auto rates =
          measure_host_rates(device, group, {.ranks_on_node = ranks, .rank_on_node = rank});
      EXPECT_EQ(device.memory().in_use(), 0U);
      EXPECT_EQ(device.host_memory().use().total(), 0U);
      if (rank == 1) result = rates.value();
    });
    before.ranks_by_round = now.ranks_by_round;
  }
  return result;
}

void expect_near(const CopyRate& rate, Seconds latency, double bytes_per_s) {
  EXPECT_NEAR(rate.latency, latency, 1e-3 * latency);
  EXPECT_NEAR(rate.bytes_per_s, bytes_per_s, 1e-3 * bytes_per_s);
}

TEST(MeasureHostRates, FindsTheSimulatedMachine) {
  HostRates host;
  host.at(Tier::pinned, Transfer::host_to_device).together = {7e-6, 50e9};
  host.at(Tier::pageable, Transfer::device_to_host).together = {30e-6, 6e9};
  host.passes = {{1, 40e9}};
  sim::SimDevice device(kPlenty, {.host = host});
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);

  const HostRates rates = measure_host_rates(device, group, {}).value();

  for (const HostCopyKind& kind : kHostCopies) {
    const CopyRate& known = host.at(kind.tier, kind.direction).together;
    expect_near(rates.at(kind.tier, kind.direction).alone, known.latency, known.bytes_per_s);
    expect_near(rates.at(kind.tier, kind.direction).together, known.latency, known.bytes_per_s);
  }
  // 8 MiB each way beside each other, of which those to the host take longer.
  EXPECT_NEAR(rates.both_ways_bytes_per_s, 48e9, 2e9);
  ASSERT_EQ(rates.passes.size(), 1U);
  EXPECT_NEAR(rates.passes.front().bytes_per_s, 40e9, 1e6);
}

TEST(MeasureHostRates, TellsRanksAloneFromAllOfANode) {
  const HostRates rates = on_shared_link(3);

  const CopyRates& down = rates.at(Tier::pinned, Transfer::device_to_host);
  expect_near(down.alone, 5e-6, 4e9);
  expect_near(down.together, 5e-6, 4e9 / 3);
  const CopyRates& up = rates.at(Tier::pageable, Transfer::host_to_device);
  expect_near(up.alone, 20e-6, 2e9);
  expect_near(up.together, 20e-6, 2e9 / 3);
}

TEST(MeasureHostRates, HasPassesWithEveryPowerOfTwoThreadsAndWithAll) {
  const HostRates rates = on_shared_link(2);

  EXPECT_EQ(rates.threads, 6);
  ASSERT_EQ(rates.passes.size(), 4U);
  const int threads[] = {1, 2, 4, 6};
  const double speeds[] = {3e9, 6e9, 10e9, 10e9};
  for (std::size_t i = 0; i < rates.passes.size(); ++i) {
    EXPECT_EQ(rates.passes[i].threads, threads[i]);
    EXPECT_NEAR(rates.passes[i].bytes_per_s, speeds[i], 1e3);
  }
}

TEST(MeasureHostRates, LeavesTheHostAllItsThreadsHoweverItEnds) {
  const Traffic none;
  Traffic traffic;
  test::ThreadTeam team(1);
  CountedGroup group(team, 0);
  SharedLink device(group, none, traffic);
  measure_host_rates(device, group, {});
  EXPECT_EQ(device.threads, 6);

  CountedGroup aborted(team, 0);
  aborted.aborted_in = group.round;  // in the last passes
  EXPECT_THROW(measure_host_rates(device, aborted, {}), ExperimentAborted);

  EXPECT_EQ(device.threads, 6);
  EXPECT_EQ(device.host_memory().use().total(), 0U);
}

/// What is measured of the guesses with so much memory.
std::optional<HostRates> with(const HostMeasure& how, Bytes of_device = kPlenty) {
  sim::SimDevice device(of_device);
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);
  auto rates = measure_host_rates(device, group, how);
  EXPECT_EQ(device.memory().in_use(), 0U);
  EXPECT_LE(device.host_memory().peak().at_peak.total(), how.memory);
  return rates;
}

TEST(MeasureHostRates, TakesNoMoreMemoryThanIsAllowed) {
  EXPECT_TRUE(with({}));
  EXPECT_TRUE(with({.memory = Bytes{20} << 20U}));
  EXPECT_TRUE(with({.memory = Bytes{2} << 20U}));
  EXPECT_TRUE(with({}, Bytes{5} << 20U));
}

TEST(MeasureHostRates, IsNotDoneWithTooLittleMemory) {
  EXPECT_FALSE(with({.memory = 1000}));
  EXPECT_FALSE(with({}, Bytes{1} << 19U));
}

TEST(MeasureHostRates, IsNotDoneIfOneRankHasTooLittle) {
  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    sim::SimDevice device(kPlenty);
    test::ThreadGroup group(team, rank);

    EXPECT_FALSE(measure_host_rates(device, group, {.memory = rank == 0 ? kPlenty : 1000}));
    EXPECT_EQ(device.host_memory().use().total(), 0U);
  });
}

TEST(MeasureHostRates, WorksOnACpu) {
  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(kPlenty, 2);
    test::ThreadGroup group(team, rank);

    const HostRates rates =
        measure_host_rates(
            device, group,
            {.memory = Bytes{1} << 22U, .ranks_on_node = 2, .rank_on_node = rank, .cache = 1 << 16})
            .value();

    for (const CopyRates& copies : rates.copies) {
      EXPECT_GT(copies.alone.bytes_per_s, 0);
      EXPECT_GT(copies.together.bytes_per_s, 0);
    }
    EXPECT_EQ(rates.both_ways_bytes_per_s, 0) << "it does one thing after the other";
    ASSERT_EQ(rates.passes.size(), 2U);
    EXPECT_GT(rates.passes.back().bytes_per_s, 0);
    EXPECT_EQ(device.memory().in_use(), 0U);
  });
}

}  // namespace
}  // namespace dstune::measure_host_rates_test
