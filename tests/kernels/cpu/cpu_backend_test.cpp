#include "kernels/cpu/cpu_backend.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/products/onednn.hpp"

namespace dstune::cpu::cpu_backend_test {

namespace {

/// A group of one rank, of which nothing is asked.
class LoneGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  bool vote(bool ok) override {
    ++votes;
    return ok && agrees;
  }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void poll() override {}

  bool agrees = true;  ///< with what this rank votes for
  int votes = 0;
};

std::unique_ptr<Collectives> none(Device& /*device*/) { return nullptr; }

OnednnTypes types_of(CpuBackend& backend, Group& group) {
  auto& device = dynamic_cast<CpuDevice&>(backend.device({.memory_limit = 1000, .threads = 1}));
  backend.collectives(group, none);
  return device.products().onednn_types();
}

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

TEST(CpuBackend, LeavesToOnednnWhatAllRanksFoundFaster) {
  CpuBackend backend(ProductChoice::automatic);
  LoneGroup slower;
  slower.agrees = false;

  EXPECT_EQ(types_of(backend, slower), OnednnTypes{});
  EXPECT_EQ(slower.votes, 2);
}

TEST(CpuBackend, AsksNobodyWhereTheUserChose) {
  CpuBackend with_onednn(Onednn::is_there() ? ProductChoice::onednn : ProductChoice::blas);
  LoneGroup group;
  group.agrees = false;

  EXPECT_EQ(types_of(with_onednn, group).fp32, Onednn::is_there());
  CpuBackend with_blas(ProductChoice::blas);
  EXPECT_EQ(types_of(with_blas, group), OnednnTypes{});
  EXPECT_EQ(group.votes, 0);
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

}  // namespace dstune::cpu::cpu_backend_test
