#include "core/search/feasibility/agreement.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/search/feasibility/machine_support.hpp"

namespace dstune::agreement_test {
namespace {

using test::gpu;
using test::kGiB;
using test::worker;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Four workers on two hosts, with one NCCL.
std::vector<WorkerInfo> four_workers() {
  std::vector<WorkerInfo> workers;
  for (int rank = 1; rank <= 4; ++rank) {
    workers.push_back(worker(rank, rank < 3 ? "node1" : "node2", 2, {gpu(80 * kGiB)}));
    workers.back().devices.front().common = {{"NCCL", "2.28.9", true}};
  }
  return workers;
}

std::vector<CommonSetting>& settings_of(WorkerInfo& worker) {
  return worker.devices.front().common;
}

std::string fault_of(const std::vector<WorkerInfo>& workers, int group_size = 4) {
  try {
    check_agreement("cuda", workers, group_size);
  } catch (const ConfigError& fault) {
    return fault.what();
  }
  return "none";
}

TEST(CheckAgreement, OneLibraryOnAllWorkersIsRight) {
  EXPECT_EQ(fault_of(four_workers()), "none");
  EXPECT_THAT(disagreement_warnings("cuda", four_workers()), IsEmpty());
}

TEST(CheckAgreement, TheWorkerWithAnotherVersionIsNamed) {
  auto workers = four_workers();
  settings_of(workers[2]).front().value = "2.21.5";

  EXPECT_THAT(
      fault_of(workers),
      HasSubstr("NCCL  is 2.28.9 on 3 workers, the first of them rank 1 on node1, but 2.21.5 "
                "on rank 3 on node2; all ranks of a group need the same"));
}

TEST(CheckAgreement, AWorkerThatDoesNotSayIsNamedToo) {
  auto workers = four_workers();
  settings_of(workers[3]).clear();

  EXPECT_THAT(fault_of(workers), HasSubstr("but not known on rank 4 on node2"));
}

TEST(CheckAgreement, HostsThatDifferAreNoFaultWhereNoGroupSpansThem) {
  auto workers = four_workers();
  for (const std::size_t i : {2, 3}) settings_of(workers[i]).front().value = "2.21.5";

  EXPECT_EQ(fault_of(workers, 1), "none");
  EXPECT_EQ(fault_of(workers, 2), "none");
  EXPECT_THAT(disagreement_warnings("cuda", workers), ElementsAre(HasSubstr("of both would fail")));
  EXPECT_THAT(fault_of(workers, 3), HasSubstr("all ranks of a group need the same"));
}

TEST(CheckAgreement, OnlyTheBackendThatIsUsedCounts) {
  auto workers = four_workers();
  settings_of(workers[2]).front().value = "2.21.5";

  EXPECT_NO_THROW(check_agreement("cpu", workers, 4));
}

TEST(DisagreementWarnings, VariablesThatDifferAreToldAndNoFault) {
  auto workers = four_workers();
  for (auto& worker : workers) settings_of(worker).push_back({"NCCL_NET", "IB"});
  settings_of(workers[0]).push_back({"NCCL_ALGO", "Ring"});
  settings_of(workers[1]).push_back({"NCCL_ALGO", "Tree"});

  EXPECT_EQ(fault_of(workers), "none");
  EXPECT_THAT(
      disagreement_warnings("cuda", workers),
      ElementsAre("NCCL_ALGO is not set on 2 workers, the first of them rank 3 on node2, but "
                  "Ring on rank 1 on node1; Tree on rank 2 on node1; set it where the run starts: "
                  "scripts/tune.sh passes it on with -hostfile, mpirun with -x NCCL_ALGO"));
}

TEST(DisagreementWarnings, AreShortHoweverManyValuesThereAre) {
  auto workers = four_workers();
  for (int rank = 5; rank <= 10; ++rank) {
    workers.push_back(workers.back());
    workers.back().rank = rank;
  }
  for (auto& worker : workers) {
    settings_of(worker).push_back({"NCCL_IB_HCA", std::to_string(worker.rank)});
  }

  EXPECT_THAT(disagreement_warnings("cuda", workers), ElementsAre(HasSubstr("; and 6 more; set")));
}

}  // namespace
}  // namespace dstune::agreement_test
