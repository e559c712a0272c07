#include "kernels/cuda/collectives/nccl_log.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/support/temporary_directory.hpp"

namespace dstune::cuda::nccl_log_test {
namespace {

// Lines of real logs, but for names of hosts.
constexpr const char* kInfiniband =
    R"(node3:460770:460770 [0] NCCL INFO Bootstrap : Using enp220s0np0:11.1.128.136<0>
node3:460770:460770 [0] NCCL INFO cudaDriverVersion 12000
NCCL version 2.19.3+cuda12.3
node3:460770:460842 [0] NCCL INFO NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; OOB enp220s0np0:11.1.128.136<0>
node3:460770:460842 [0] NCCL INFO Using non-device net plugin version 0
node3:460770:460842 [0] NCCL INFO Using network IB
node3:460770:460842 [0] NCCL INFO DMA-BUF is available on GPU device 0
)";

constexpr const char* kPlugin =
    R"(bigo:1884:2298 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
bigo:1884:2298 [0] NCCL INFO Using network IBext_v8
)";

constexpr const char* kSeveral = R"(NCCL version 2.28.9+cuda13.0
node1:7:7 [0] NCCL INFO Initialized NET plugin Socket
node1:7:7 [0] NCCL INFO Assigned NET plugin Socket to comm
node1:7:7 [0] NCCL INFO Using network Socket
node1:7:7 [0] NCCL INFO Using network AWS Libfabric
)";

TEST(NcclFacts, NameNetworkAndVersion) {
  EXPECT_EQ(nccl_facts(kInfiniband), (NcclFacts{"IB", "2.19.3+cuda12.3"}));
}

TEST(NcclFacts, NameThePluginAsItNamesItself) {
  EXPECT_EQ(nccl_facts(kPlugin), (NcclFacts{"IBext_v8", ""}));
}

TEST(NcclFacts, AreThoseOfTheLastCommunicator) {
  EXPECT_EQ(nccl_facts(kSeveral), (NcclFacts{"AWS Libfabric", "2.28.9+cuda13.0"}));
}

TEST(NcclFacts, AreEmptyWhereTheLogSaysNothing) {
  EXPECT_EQ(nccl_facts(""), NcclFacts{});
  EXPECT_EQ(nccl_facts("NCCL INFO Using non-device net plugin version 0\n"), NcclFacts{});
}

/// The environment's, restored at the end.
class NcclLogTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* variable : kVariables) ::unsetenv(variable);
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    for (const char* variable : kVariables) ::unsetenv(variable);
    ::unsetenv("TMPDIR");
  }

  bool folder_is_empty() const { return std::filesystem::is_empty(folder_.path()); }
  static std::string value(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "" : text;
  }

  static constexpr const char* kVariables[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS",
                                               "NCCL_DEBUG_FILE"};
  testing_support::TemporaryDirectory folder_;
};

TEST_F(NcclLogTest, LetsNcclWriteWhereOnlyThisProcessReads) {
  const NcclLog log = NcclLog::begin();
  std::ofstream(value("NCCL_DEBUG_FILE")) << kInfiniband;

  EXPECT_EQ(log.facts().network, "IB");
  EXPECT_EQ(value("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(value("NCCL_DEBUG_SUBSYS"), "INIT,NET");
  using Permissions = std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(value("NCCL_DEBUG_FILE")).permissions(),
            Permissions::owner_read | Permissions::owner_write);
}

TEST_F(NcclLogTest, LeavesNoFile) {
  {
    NcclLog log;
    log = NcclLog::begin();
    const NcclLog moved = std::move(log);
    EXPECT_FALSE(folder_is_empty());
  }

  EXPECT_TRUE(folder_is_empty());
}

TEST_F(NcclLogTest, LeavesTheUsersWishAlone) {
  for (const char* variable : kVariables) {
    ::setenv(variable, "his", 1);

    const NcclLog log = NcclLog::begin();

    EXPECT_EQ(value(variable), "his");
    EXPECT_EQ(log.facts(), NcclFacts{});
    EXPECT_TRUE(folder_is_empty());
    ::unsetenv(variable);
    EXPECT_EQ(value("NCCL_DEBUG"), "");
  }
}

}  // namespace
}  // namespace dstune::cuda::nccl_log_test
