// Collectives that begin late show who does not wait for them.
#include <atomic>
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/nccl/test_ranks.hpp"

namespace delay_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::DeviceArray;
using cuda_on_host::TestEvent;
using cuda_on_host::TestRank;
using cuda_on_host::TestStream;

/// What a stream sees of a sum that another one is to make, as numbers of host functions.
struct Sighting {
  std::atomic<bool> is_summed = false;
  std::atomic<bool> was_early = false;
};

void note_sum(void* sighting) { static_cast<Sighting*>(sighting)->is_summed = true; }

void look(void* data) {
  auto& sighting = *static_cast<Sighting*>(data);
  if (!sighting.is_summed) sighting.was_early = true;
}

/// How often of `times` another stream looked before the sum was there.
int times_early(TestRank& rank, bool waits, int times) {
  const TestStream other;
  const TestEvent summed;
  const DeviceArray<float> data(1);
  int early = 0;
  for (int i = 0; i < times; ++i) {
    Sighting sighting;
    ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    check(cudaLaunchHostFunc(rank.stream, note_sum, &sighting));
    check(cudaEventRecord(summed.get(), rank.stream));
    if (waits) check(cudaStreamWaitEvent(other.get(), summed.get()));
    check(cudaLaunchHostFunc(other.get(), look, &sighting));
    check(cudaStreamSynchronize(rank.stream));
    other.synchronise();
    early += sighting.was_early ? 1 : 0;
  }
  return early;
}

class DelayedCollectives : public testing::Test {
 protected:
  DelayedCollectives() { cuda_on_host::delay_collectives(2000); }
  ~DelayedCollectives() override { cuda_on_host::delay_collectives(0); }
};

TEST_F(DelayedCollectives, are_waited_for_by_who_waits) {
  const std::uint64_t before = cuda_on_host::delayed_collectives();
  cuda_on_host::run_ranks(2, [](TestRank& rank) { EXPECT_EQ(times_early(rank, true, 20), 0); });
  EXPECT_EQ(cuda_on_host::delayed_collectives() - before, 40U);
}

TEST_F(DelayedCollectives, show_who_does_not_wait) {
  cuda_on_host::run_ranks(2, [](TestRank& rank) { EXPECT_GT(times_early(rank, false, 20), 0); });
}

}  // namespace
}  // namespace delay_test
