// Streams and events: order, time, queries, and work that hangs.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace stream_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::DeviceArray;
using cuda_on_host::TestEvent;
using cuda_on_host::TestStream;

__global__ void add(int* value, int amount) { *value = *value * 10 + amount; }

class Streams : public testing::Test {
 protected:
  void SetUp() override { cuda_on_host::set_up({.devices = 2}); }
};

TEST_F(Streams, run_their_work_in_order_and_log_its_names) {
  cuda_on_host::record_log(true);
  const TestStream stream;
  const DeviceArray<int> value(1);
  stream.launch(1, 1, add, value.data(), 1);
  check(cudaMemsetAsync(value.data(), 0, 0, stream.get()));
  stream.launch(1, 1, add, value.data(), 2);
  stream.synchronise();
  EXPECT_EQ(value.values()[0], 12);
  const std::vector<std::string> wanted{"stream_test::(anonymous namespace)::add",
                                        "cudaMemsetAsync",
                                        "stream_test::(anonymous namespace)::add"};
  EXPECT_EQ(cuda_on_host::log_of(stream.get()), wanted);
}

TEST_F(Streams, a_wait_is_for_the_record_at_the_call) {
  const TestStream a;
  const TestStream b;
  const TestEvent event;
  check(cudaStreamWaitEvent(b.get(), event.get()));  // never recorded: nothing
  check(cudaEventRecord(event.get(), a.get()));
  check(cudaStreamWaitEvent(b.get(), event.get()));
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  check(cudaMemsetAsync(nullptr, 0, 0, a.get()));
  check(cudaEventRecord(event.get(), a.get()));
  b.synchronise();  // not for the second record, which cannot come yet
  EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
  check(cudaStreamWaitEvent(b.get(), event.get()));
  EXPECT_EQ(cudaStreamQuery(b.get()), cudaErrorNotReady);
  cuda_on_host::release_hangs();
  b.synchronise();
  EXPECT_EQ(cudaEventQuery(event.get()), cudaSuccess);
}

TEST_F(Streams, an_event_may_be_destroyed_while_another_stream_waits_for_it) {
  const TestStream a;
  const TestStream b;
  const DeviceArray<int> value(1);
  cuda_on_host::hang_at("cudaLaunchKernelEx", 1);
  a.launch(1, 1, add, value.data(), 1);
  {
    const TestEvent event;
    check(cudaEventRecord(event.get(), a.get()));
    check(cudaStreamWaitEvent(b.get(), event.get()));
  }
  b.launch(1, 1, add, value.data(), 2);
  cuda_on_host::release_hangs();
  b.synchronise();
  EXPECT_EQ(value.values()[0], 12);
}

TEST_F(Streams, elapsed_time_needs_two_records_that_ended) {
  const TestStream stream;
  const TestEvent start;
  const TestEvent end;
  float ms = -1.0F;
  check(cudaEventRecord(start.get(), stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&ms, start.get(), end.get()), cudaErrorInvalidResourceHandle);
  cuda_on_host::hang_at("cudaEventRecord", 1);
  check(cudaEventRecord(end.get(), stream.get()));
  EXPECT_EQ(cudaEventElapsedTime(&ms, start.get(), end.get()), cudaErrorNotReady);
  cuda_on_host::release_hangs();
  check(cudaEventSynchronize(end.get()));
  check(cudaEventElapsedTime(&ms, start.get(), end.get()));
  EXPECT_GE(ms, 0.0F);
}

TEST_F(Streams, a_device_is_synchronised_with_all_its_streams_and_no_others) {
  check(cudaSetDevice(1));
  const TestStream other;
  const DeviceArray<int> value(1);
  cuda_on_host::hang_at("cudaLaunchKernelEx", 1, 1);
  other.launch(1, 1, add, value.data(), 3);
  check(cudaSetDevice(0));
  check(cudaDeviceSynchronize());
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorNotReady);
  cuda_on_host::release_hangs();
  check(cudaSetDevice(1));
  check(cudaDeviceSynchronize());
  EXPECT_EQ(value.values()[0], 3);
}

TEST_F(Streams, host_functions_run_in_order_too) {
  const TestStream stream;
  const DeviceArray<int> value(1);
  stream.launch(1, 1, add, value.data(), 1);
  check(cudaLaunchHostFunc(
      stream.get(), [](void* data) { *static_cast<int*>(data) += 5; }, value.data()));
  stream.launch(1, 1, add, value.data(), 2);
  stream.synchronise();
  EXPECT_EQ(value.values()[0], 62);
}

/// What it does on a stream ends when it is told to, or when somebody waits for room.
struct Gate {
  std::atomic<bool> open = false;

  static void wait(void* gate) {
    const auto& own = *static_cast<Gate*>(gate);
    while (!own.open && cuda_on_host::full_queues() == 0) std::this_thread::yield();
  }
};

TEST_F(Streams, hold_so_much_and_stop_who_queues_more) {
  for (const std::uint64_t more : {0U, 1U}) {
    cuda_on_host::set_up({});
    const TestStream stream;
    Gate gate;
    check(cudaLaunchHostFunc(stream.get(), Gate::wait, &gate));
    for (std::uint64_t i = 1; i < cuda_on_host::kMostQueued + more; ++i) {
      check(cudaMemsetAsync(nullptr, 0, 0, stream.get()));
    }
    EXPECT_EQ(cuda_on_host::full_queues(), more);
    gate.open = true;
    stream.synchronise();
  }
}

TEST(StreamsDeathTest, the_default_stream_is_refused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(cudaMemsetAsync(nullptr, 0, 0, nullptr), "the default stream is used");
}

}  // namespace
}  // namespace stream_test
