// The suite of Collectives over processes, and what is MPI's own.
#include "mpi/collectives/mpi_collectives.hpp"

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/core/device/collectives/collectives_suite.hpp"

namespace dstune {
namespace {

constexpr Bytes kMemory = Bytes{1} << 30U;

/// Of the first ranks.
class Ranks {
 public:
  template <class Body>
  void run(int size, const Body& body) {
    if (world_.rank() >= size) return;
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    MpiGroup group(ranks, 100 - size, link_);
    cpu::CpuDevice device(kMemory);
    MpiCollectives collectives(device, group);
    body(device, collectives);
  }

 private:
  Communicator world_ = Communicator::duplicate(MPI_COMM_WORLD);
  WorkerLink link_{world_, WorkerOptions{}};
};

TEST(MpiCollectives, MaximaDoNotLoseNanAndInfinity) {
  Ranks().run(4, [](Device& /*device*/, Collectives& collectives) {
    const bool last = collectives.rank() == collectives.size() - 1;
    std::vector<float> values = {last ? NAN : 1.0F, last ? INFINITY : 1.0F};

    collectives.all_reduce({values.data(), 2, DType::fp32}, ReduceOp::max, Purpose::other);

    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_TRUE(std::isinf(values[1]));
  });
}

}  // namespace

namespace testing {

CollectivesCase collectives_case() {
  const auto copy = [](const void* from, void* to, std::size_t size) {
    std::memcpy(to, from, size);
  };
  const auto run = [](int size, const CollectivesCase::Body& body) { Ranks().run(size, body); };
  return {run, copy, copy};
}

}  // namespace testing
}  // namespace dstune
