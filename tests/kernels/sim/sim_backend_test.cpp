#include "kernels/sim/sim_backend.hpp"

#include <gtest/gtest.h>

namespace dstune::sim::sim_backend_test {
namespace {

class SecondOfTwo final : public Group {
 public:
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  bool vote(bool ok) override { return ok; }
  std::vector<std::string> gather(const std::string& /*text*/) override { return {}; }
  void poll() override {}
};

// Else the last digits of a time would depend on the experiments before it.
TEST(SimBackend, EveryExperimentsClockStartsAtZero) {
  SimBackend backend;
  backend.device({.memory_limit = 1000}).spend_host_time(1.5);

  EXPECT_EQ(backend.device({.memory_limit = 1000}).now(), 0);
}

TEST(SimBackend, CollectivesTakeTimeOnItsDevice) {
  SimBackend backend;
  Device& device = backend.device({.memory_limit = 1000});
  SecondOfTwo group;
  const auto collectives = backend.collectives(group, {});

  collectives->all_reduce({nullptr, 100, DType::fp32}, ReduceOp::sum, Purpose::gradients);
  device.synchronize();

  EXPECT_EQ(collectives->rank(), 1);
  EXPECT_EQ(collectives->size(), 2);
  EXPECT_GT(device.now(), 0);
}

TEST(DescribeDevice, IsEveryProcessesOwn) {
  EXPECT_FALSE(describe_device().is_shared);
  EXPECT_EQ(describe_device().memory, Bytes{80} << 30U);
}

}  // namespace
}  // namespace dstune::sim::sim_backend_test
