#include "kernels/cpu/cpu_backend.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace dstune::cpu {

namespace {

/// A group of one rank, of which nothing is asked.
class LoneGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  bool vote(bool ok) override { return ok; }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void poll() override {}
};

TEST(CpuBackend, KeepsItsDeviceFromExperimentToExperiment) {
  CpuBackend backend;
  Device& first = backend.device({.memory_limit = 1000, .threads = 1});
  const void* const place = &first;

  Device& second = backend.device({.memory_limit = 1000, .threads = 1});

  EXPECT_EQ(&second, place);
}

TEST(CpuBackend, HasTheLimitOfTheExperimentThatRuns) {
  CpuBackend backend;
  backend.device({.memory_limit = 1000, .threads = 1});

  EXPECT_EQ(backend.device({.memory_limit = 500, .threads = 1}).memory().limit(), 500U);
}

TEST(CpuBackend, CommunicatesThroughHostMemory) {
  CpuBackend backend;
  Device& device = backend.device({.memory_limit = 1000, .threads = 1});
  LoneGroup group;
  const Device* asked_for = nullptr;

  backend.collectives(group, [&](Device& of) -> std::unique_ptr<Collectives> {
    asked_for = &of;
    return nullptr;
  });

  EXPECT_EQ(asked_for, &device);
}

TEST(CpuBackend, HasNoCollectivesWithoutADevice) {
  CpuBackend backend;
  LoneGroup group;

  EXPECT_THROW(backend.collectives(group, {}), std::logic_error);
}

TEST(DescribeDevice, IsTheHostThatAllItsProcessesShare) {
  const DeviceInfo info = describe_device();

  EXPECT_EQ(info.backend, "cpu");
  EXPECT_FALSE(info.name.empty());
  EXPECT_TRUE(info.is_shared);
  EXPECT_TRUE(info.unusable.empty());
  EXPECT_GT(info.free_memory, 1U << 20U);
  EXPECT_LT(info.free_memory, info.memory);
}

}  // namespace

}  // namespace dstune::cpu
