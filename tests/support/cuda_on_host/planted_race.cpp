// A program with one missing order, by name, or with none: what the thread sanitizer must report or
// not. planted_race_test.py runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "tests/support/cuda_on_host/test_stream.hpp"

namespace {

using cuda_on_host::check;
using cuda_on_host::DeviceArray;
using cuda_on_host::TestEvent;
using cuda_on_host::TestStream;

__global__ void write(int* values, int value) { values[threadIdx.x] = value; }

__global__ void read(const int* values, int* sum) { atomicAdd(sum, values[threadIdx.x]); }

/// Stream B reads what stream A writes. Either order in time must be seen, so B is asked last.
void between_streams(bool ordered) {
  const TestStream a;
  const TestStream b;
  const TestEvent written;
  const DeviceArray<int> values(64);
  const DeviceArray<int> sum(1);
  a.launch(1, 64, write, values.data(), 1);
  check(cudaEventRecord(written.get(), a.get()));
  if (ordered) check(cudaStreamWaitEvent(b.get(), written.get()));
  b.launch(1, 64, read, values.data(), sum.data());
  b.synchronise();
  a.synchronise();
}

/// B waits for A's event, but A writes again after it.
void after_the_event(bool ordered) {
  const TestStream a;
  const TestStream b;
  const TestEvent written;
  const DeviceArray<int> values(64);
  const DeviceArray<int> sum(1);
  a.launch(1, 64, write, values.data(), 1);
  if (!ordered) check(cudaEventRecord(written.get(), a.get()));
  a.launch(1, 64, write, values.data(), 2);
  if (ordered) check(cudaEventRecord(written.get(), a.get()));
  check(cudaStreamWaitEvent(b.get(), written.get()));
  b.launch(1, 64, read, values.data(), sum.data());
  b.synchronise();
  a.synchronise();
}

/// The host fills a pinned buffer again while a copy from it may run: another stream's end says
/// nothing.
void from_host(bool ordered) {
  const TestStream a;
  const TestStream b;
  const DeviceArray<int> values(64);
  const DeviceArray<int> others(64);
  int* pinned = nullptr;
  check(cudaMallocHost(&pinned, 64 * sizeof(int)));
  pinned[0] = 1;
  check(cudaMemcpyAsync(values.data(), pinned, 64 * sizeof(int), cudaMemcpyHostToDevice, a.get()));
  b.launch(1, 64, write, others.data(), 1);
  (ordered ? a : b).synchronise();
  pinned[0] = 2;
  a.synchronise();
  check(cudaFreeHost(pinned));
}

/// The host reads a pinned buffer after a query that says "not yet", or that is not asked.
void to_host(bool ordered) {
  const TestStream a;
  const DeviceArray<int> values(64);
  int* pinned = nullptr;
  check(cudaMallocHost(&pinned, 64 * sizeof(int)));
  check(cudaMemcpyAsync(pinned, values.data(), 64 * sizeof(int), cudaMemcpyDeviceToHost, a.get()));
  if (ordered) {
    while (cudaStreamQuery(a.get()) == cudaErrorNotReady) continue;
  }
  if (pinned[0] != 0) std::abort();
  a.synchronise();
  check(cudaFreeHost(pinned));
}

/// What the host writes after enqueueing is not before what it enqueued.
void after_enqueueing(bool ordered) {
  const TestStream a;
  const DeviceArray<int> values(64);
  int* pinned = nullptr;
  check(cudaMallocHost(&pinned, 64 * sizeof(int)));
  if (ordered) pinned[0] = 1;
  check(cudaMemcpyAsync(values.data(), pinned, 64 * sizeof(int), cudaMemcpyHostToDevice, a.get()));
  if (!ordered) pinned[0] = 1;
  a.launch(1, 64, write, values.data(), 1);  // enqueueing more adds no order
  a.synchronise();
  check(cudaFreeHost(pinned));
}

struct Case {
  const char* name;
  void (*run)(bool ordered);
};

constexpr Case kCases[] = {{"between_streams", between_streams},
                           {"after_the_event", after_the_event},
                           {"from_host", from_host},
                           {"to_host", to_host},
                           {"after_enqueueing", after_enqueueing}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool ordered = std::strcmp(argv[2], "ordered") == 0;
  for (const Case& one : kCases) {
    if (std::strcmp(argv[1], one.name) != 0) continue;
    one.run(ordered);
    std::puts("done");
    return 0;
  }
  return 2;
}
