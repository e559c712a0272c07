#include "core/search/schedule/machine_faults.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/check_messages.hpp"

namespace dstune::machine_faults_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A group on hosts of four ranks each, whose times scatter by 5 %.
CheckedGroup make_group(int size, unsigned seed = 1) {
  std::mt19937 random(seed);
  const auto noisy = [&](double value) {
    const double part = static_cast<double>(random()) / 4294967296.0;
    return value * (0.95 + 0.1 * part);
  };
  CheckedGroup group;
  for (int rank = 0; rank < size; ++rank) {
    group.workers.push_back({rank + 1, std::string(1, static_cast<char>('a' + rank / 4)), "Xeon"});
    group.names.push_back("rank " + std::to_string(rank + 1) + " on " + group.workers.back().host);
    group.check.ranks.push_back({noisy(4e10), noisy(8e9), noisy(0.03)});
    for (int round = 0; round < pair_rounds(size); ++round) {
      const int partner = partner_of(rank, round, size);
      if (partner <= rank) continue;
      const bool is_near = rank / 4 == partner / 4;
      group.check.pairs.push_back(
          {rank, partner, {noisy(is_near ? 5e-6 : 4e-5), noisy(is_near ? 5e9 : 1e9)}});
    }
  }
  return group;
}

std::vector<std::string> keys(const std::vector<CheckedGroup>& groups) {
  std::vector<std::string> keys;
  for (const MachineFault& fault : find_machine_faults(groups)) keys.push_back(fault.key);
  return keys;
}

void slow_messages(CheckedGroup& group, int rank, double factor) {
  for (PairCheck& pair : group.check.pairs) {
    if (pair.first != rank && pair.second != rank) continue;
    pair.rate.latency *= factor;
    pair.rate.bytes_per_s /= factor;
  }
}

TEST(MachineFaults, AreNoneOnAQuietMachine) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (const int size : {1, 2, 3, 4, 8, 13}) {
      EXPECT_THAT(keys({make_group(size, seed)}), IsEmpty()) << size << " ranks, seed " << seed;
    }
  }
}

TEST(MachineFaults, AreTheRankWithHalfTheRate) {
  CheckedGroup group = make_group(2);
  group.check.ranks[1].flops_per_s /= 2;

  const auto faults = find_machine_faults({group});

  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].key, "product 2");
  EXPECT_THAT(faults[0].workers, ElementsAre(group.workers[1]));
  EXPECT_THAT(faults[0].how, AllOf(HasSubstr("times as long as the others for a matrix product"),
                                   HasSubstr("GFLOP/s against ")));
}

TEST(MachineFaults, AreTheRankThatIsInterrupted) {
  CheckedGroup group = make_group(2);
  group.check.ranks[0].jitter = 1;

  EXPECT_THAT(keys({group}), ElementsAre("jitter 1"));
}

TEST(MachineFaults, AreJudgedLessStrictlyOnABusyMachine) {
  CheckedGroup group = make_group(4);
  for (RankCheck& rank : group.check.ranks) rank.jitter = 0.8;
  group.check.ranks[2].jitter = 16;
  group.check.ranks[2].flops_per_s /= 4;

  EXPECT_THAT(keys({group}), IsEmpty());
  EXPECT_THAT(describe_check({group}), HasSubstr("the machine is busy"));
  group.check.ranks[2].flops_per_s /= 4;
  EXPECT_THAT(keys({group}), ElementsAre("product 3"));
}

TEST(MachineFaults, AreFoundBesideOtherGroupsToo) {
  CheckedGroup slow = make_group(1);
  slow.workers[0].rank = 9;
  slow.check.ranks[0].copy_bytes_per_s /= 3;

  EXPECT_THAT(keys({make_group(1), slow}), ElementsAre("copy 9"));
}

TEST(MachineFaults, AreNotTheSlowerHardware) {
  CheckedGroup group = make_group(2);
  group.workers[1].hardware = "Atom";
  group.check.ranks[1].flops_per_s /= 10;

  EXPECT_THAT(keys({group}), IsEmpty());
}

TEST(MachineFaults, AreTheRankWhoseMessagesAreSlowWithEveryPartner) {
  for (const int size : {3, 4}) {
    CheckedGroup group = make_group(size);
    slow_messages(group, 1, 5);

    EXPECT_THAT(keys({group}), ElementsAre("volume 2")) << "25 us are no fault by themselves";
  }
  CheckedGroup group = make_group(8);
  slow_messages(group, 5, 10);
  EXPECT_THAT(keys({group}), ElementsAre("latency 6", "volume 6", "latency 2 6", "volume 2 6"))
      << "between hosts it has one partner, and nobody knows whose fault that is";
}

TEST(MachineFaults, AreASingleSlowConnection) {
  CheckedGroup group = make_group(4);
  group.check.pairs[2].rate.bytes_per_s /= 6;
  const PairCheck& slow = group.check.pairs[2];

  const auto faults = find_machine_faults({group});

  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0].workers, ElementsAre(group.workers[static_cast<std::size_t>(slow.first)],
                                             group.workers[static_cast<std::size_t>(slow.second)]));
}

// As of four GPUs of which two and two are joined by NVLink.
TEST(MachineFaults, AreNotTheConnectionsOfAnotherKind) {
  CheckedGroup group = make_group(4);
  for (PairCheck& pair : group.check.pairs) {
    if (pair.first / 2 == pair.second / 2) pair.rate.bytes_per_s *= 10;
  }

  EXPECT_THAT(keys({group}), IsEmpty());
}

TEST(MachineFaults, OfOnePairAreNotTold) {
  CheckedGroup group = make_group(2);
  slow_messages(group, 0, 100);

  EXPECT_THAT(keys({group}), IsEmpty()) << "there is nothing to compare with";
}

TEST(MachineCheckText, SaysWhatWasMeasured) {
  CheckedGroup group = make_group(2);
  group.check.ranks = {{4e10, 8e9, 0.031}, {4.2e10, 8e9, 0.02}};
  group.check.pairs = {{0, 1, {5e-6, 2e9}}};

  EXPECT_EQ(describe_check({group}),
            "2 ranks: 40.0 GFLOP/s to 42.0 GFLOP/s, copies of 8.0 GB/s, jitter at most 3 %; 1 "
            "pair: 5.0 us, 2.0 GB/s each way");
  EXPECT_THAT(check_table({group}),
              AllOf(HasSubstr("| rank 2 on a | 42.0 | 8.0 | 2.0 |"),
                    HasSubstr("| ranks 1 and 2 | 5.0 | 2.00 |"), HasSubstr("| sum of 2 ranks |")));
}

}  // namespace
}  // namespace dstune::machine_faults_test
