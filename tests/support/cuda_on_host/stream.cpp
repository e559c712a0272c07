#include "tests/support/cuda_on_host/stream.hpp"

#include <utility>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/memory_guard.hpp"

namespace cuda_on_host {
namespace {

std::unique_ptr<Task> next_task(CUstream_st& stream) {
  Locked locked;
  stream.arrived.wait(locked.lock(), [&] { return !stream.tasks.empty() || stream.closing; });
  if (stream.tasks.empty()) {
    stream.ended = true;
    return nullptr;
  }
  auto task = std::move(stream.tasks.front());
  stream.tasks.pop_front();
  if (state().log) stream.log.push_back(task->name);
  return task;
}

void end_task(CUstream_st& stream, std::unique_ptr<Task> task) {
  const Locked locked;
  task.reset();
  ++stream.completed;
  stream.advanced.notify_all();
}

void run(const Task& task) {
  const RunsAs device(Side::device);
  task.work();
}

void run(CUstream_st& stream) {
  current_device() = stream.device;
  while (auto task = next_task(stream)) {
    happens_after(task.get());
    run(*task);
    happens_before(&stream);
    end_task(stream, std::move(task));
  }
}

/// Work that goes on when the hangs are released.
std::function<void()> hang() {
  const Locked locked;
  return [releases = state().hang_releases] {
    Locked inside;
    inside.wait_until([&] { return state().hang_releases != releases; });
  };
}

void push(CUstream_st& stream, std::string name, std::function<void()> work) {
  std::unique_ptr<Task> task;
  {
    const Unobserved unobserved;
    task = std::make_unique<Task>(Task{std::move(name), std::move(work)});
  }
  happens_before(task.get());
  Locked locked;
  const auto has_room = [&] { return stream.enqueued - stream.completed < kMostQueued; };
  if (!has_room()) ++state().full_queues;
  stream.advanced.wait(locked.lock(), has_room);
  stream.tasks.push_back(std::move(task));
  ++stream.enqueued;
  stream.arrived.notify_one();
}

/// Waits for all that was enqueued so far.
void drain(CUstream_st& stream) {
  Locked locked;
  const std::uint64_t target = stream.enqueued;
  stream.advanced.wait(locked.lock(), [&] { return stream.completed >= target; });
}

std::vector<cudaStream_t> streams_of(int device) {
  std::vector<cudaStream_t> streams;
  const Locked locked;
  for (cudaStream_t stream : state().streams) {
    if (stream->device == device) streams.push_back(stream);
  }
  return streams;
}

cudaError_t create(cudaStream_t* stream, int priority) {
  auto created = std::make_unique<CUstream_st>();
  created->device = current_device();
  created->priority = priority;
  // Starting a thread is an edge from the host to the stream, so it is observed.
  created->worker = std::thread([&stream = *created] { run(stream); });
  join_closed_streams(false);
  const Locked locked;
  created->number = state().devices.at(static_cast<std::size_t>(created->device)).streams_made++;
  state().streams.insert(created.get());
  *stream = created.release();
  return cudaSuccess;
}

}  // namespace

void require_stream(cudaStream_t stream) {
  const Locked locked;
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    misuse("the default stream is used");
  }
  if (!state().streams.contains(stream)) misuse("a stream is used that does not live");
}

void enqueue(cudaStream_t stream, std::string name, std::function<void()> work) {
  require_stream(stream);
  if (std::exchange(call_effects().hangs, false)) push(*stream, "hang", hang());
  push(*stream, std::move(name), std::move(work));
}

void synchronise(cudaStream_t stream) {
  drain(*stream);
  happens_after(stream);
}

void join_closed_streams(bool all) {
  std::vector<cudaStream_t> joined;
  const Unobserved unobserved;
  {
    const Locked locked;
    std::erase_if(state().closed_streams, [&](cudaStream_t stream) {
      if (!all && !stream->ended) return false;
      joined.push_back(stream);
      return true;
    });
  }
  for (cudaStream_t stream : joined) {
    stream->worker.join();
    delete stream;
  }
}

void synchronise_device(int device) {
  for (cudaStream_t stream : streams_of(device)) synchronise(stream);
}

void drain_device(int device) {
  for (cudaStream_t stream : streams_of(device)) drain(*stream);
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int /*flags*/,
                                         int priority) {
  return call("cudaStreamCreateWithPriority", [&] { return create(pStream, priority); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int /*flags*/) {
  return call("cudaStreamCreateWithFlags", [&] { return create(pStream, 0); });
}

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return call("cudaStreamCreate", [&] { return create(pStream, 0); });
}

/// Returns at once, as CUDA's: what is enqueued still runs. set_up() joins the thread.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  require_stream(stream);
  return releasing_call("cudaStreamDestroy", [&] {
    const Locked locked;
    stream->closing = true;
    stream->arrived.notify_one();
    state().streams.erase(stream);
    state().closed_streams.push_back(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int* priority) {
  require_stream(hStream);
  return call("cudaStreamGetPriority", [&] {
    *priority = hStream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  require_stream(stream);
  return call("cudaStreamQuery", [&] {
    {
      const Locked locked;
      if (stream->completed < stream->enqueued) return cudaErrorNotReady;
    }
    happens_after(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  require_stream(stream);
  return call("cudaStreamSynchronize", [&] {
    synchronise(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return call("cudaLaunchHostFunc", [&] {
    enqueue(stream, "cudaLaunchHostFunc", [=] {
      const RunsAs host(Side::host);
      fn(userData);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    synchronise_device(current_device());
    return cudaSuccess;
  });
}
