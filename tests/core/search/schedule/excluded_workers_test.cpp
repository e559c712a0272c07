#include "core/search/schedule/excluded_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/search/feasibility/machine_support.hpp"

namespace dstune::excluded_workers_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

WorkerInfo gpu_worker(int rank, const std::string& host, int index) {
  DeviceInfo device = test::gpu(test::kGiB);
  device.id = host + "-GPU-" + std::to_string(index);
  device.index = index;
  return test::worker(rank, host, 2, {device});
}

const std::vector<WorkerInfo> kWorkers = {
    gpu_worker(1, "node1.cluster", 0), gpu_worker(2, "node1.cluster", 1),
    gpu_worker(3, "node2.cluster", 0), gpu_worker(4, "node2.cluster", 1)};

std::vector<int> excluded(const std::vector<std::string>& names) {
  return excluded_ranks(names, kWorkers, "config.json");
}

std::string fault(const std::vector<std::string>& names) {
  try {
    excluded(names);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ExcludedWorkers, AreNamedByRankHostAndDevice) {
  EXPECT_THAT(excluded({"rank 3"}), ElementsAre(3));
  EXPECT_THAT(excluded({"node1.cluster"}), ElementsAre(1, 2));
  EXPECT_THAT(excluded({"node2"}), ElementsAre(3, 4));
  EXPECT_THAT(excluded({"node2.cluster-GPU-0"}), ElementsAre(3));
  EXPECT_THAT(excluded({"node2:1", "rank 4", "rank 1"}), ElementsAre(1, 4));
  EXPECT_THAT(excluded({}), IsEmpty());
}

TEST(ExcludedWorkers, MustBeKnown) {
  EXPECT_THAT(fault({"node3"}),
              testing::AllOf(HasSubstr("/dstune/exclude  is \"node3\", which is not a worker"),
                             HasSubstr("did you mean \"node1\"?"), HasSubstr("ranks from 1 to 4"),
                             HasSubstr("node1.cluster")));
  EXPECT_THAT(fault({"rank 0"}), HasSubstr("which only tunes"));
  EXPECT_THAT(fault({"rank 9", "elsewhere"}), HasSubstr("2 problems"));
}

TEST(ExcludedWorkers, AreNotAll) {
  EXPECT_THAT(fault({"node1", "node2"}), HasSubstr("leaves none of the 4 workers"));
}

TEST(ExcludedWorkers, TakeNoPartOfTheirHost) {
  const auto left = without_ranks(kWorkers, {2, 3, 4});

  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].rank, 1);
  EXPECT_EQ(left[0].workers_on_host, 1);
}

}  // namespace
}  // namespace dstune::excluded_workers_test
