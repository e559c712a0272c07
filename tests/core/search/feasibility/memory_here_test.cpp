#include "core/search/feasibility/memory_here.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/search/feasibility/machine_support.hpp"

namespace dstune::memory_here_test {
namespace {

using test::cpu;
using test::kGiB;
using test::make_config;
using testing::HasSubstr;

constexpr Bytes kMiB = kGiB >> 10U;

/// A machine with a GPU, which says what a worker would find of it.
class MemoryHereTest : public testing::Test {
 protected:
  MemoryHereTest() {
    gpu_.limit_is_free_memory = true;
    gpu_.seen = 1;
  }

  LocalBackends backends() {
    return {{gpu_, cpu(kGiB, kGiB)}, {}, [this](const std::string& name, const Placement& place) {
              EXPECT_EQ(name, "cuda");
              placement_ = place;
              DeviceInfo measured = gpu_;
              measured.free_memory = free_;
              measured.reserves = {{"kernels", 100 * kMiB, true}};
              if (place.local_size > 1) measured.reserves.push_back({"NCCL's buffers", kGiB});
              measured.unusable = refusal_;
              return measured;
            }};
  }

  std::optional<MemoryLimit> limit(int workers = 1) {
    const Machine planned = machine_of_plan(config_, {workers}, backends().devices);
    return limit_of_gpu_here(config_, planned, backends());
  }

  TuningConfig config_ = make_config();
  DeviceInfo gpu_ = test::gpu(80 * kGiB);
  Bytes free_ = 60 * kGiB;
  std::string refusal_;
  std::optional<Placement> placement_;
};

TEST_F(MemoryHereTest, IsWhatARunWouldFindOnTheGpu) {
  const auto found = limit();

  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 60 * kGiB - 100 * kMiB);
  EXPECT_EQ(found->origin,
            "60.00 GiB free on Some GPU of this machine, less 100.00 MiB kernels (measured)");
}

TEST_F(MemoryHereTest, OfWorkersThatCommunicateKeepsWhatThatTakes) {
  EXPECT_EQ(limit(8)->bytes, 59 * kGiB - 100 * kMiB) << "of a GPU for each";
}

TEST_F(MemoryHereTest, IsNoneOfACpuAndTheGpuIsNotAsked) {
  config_.settings.backend = "cpu";

  EXPECT_FALSE(limit());
  EXPECT_FALSE(placement_);
}

TEST_F(MemoryHereTest, IsNoneWithAWarningOfAGpuThatCannotBeAsked) {
  refusal_ = "out of memory";
  testing::internal::CaptureStderr();

  EXPECT_FALSE(limit());

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: the memory of Some GPU is not known: out of memory\n");
}

TEST_F(MemoryHereTest, IsNoneWithAWarningOfAGpuThatOthersFill) {
  free_ = 50 * kMiB;
  testing::internal::CaptureStderr();

  EXPECT_FALSE(limit());

  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("nothing is left of 50.00 MiB free on Some GPU of this machine"));
}

TEST_F(MemoryHereTest, IsNoneWithAWarningWhereHeadroomLeavesNothing) {
  config_.objective.memory_headroom = 70 * kGiB;
  testing::internal::CaptureStderr();

  EXPECT_FALSE(limit());

  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("memory_headroom leaves nothing"));
}

}  // namespace
}  // namespace dstune::memory_here_test
