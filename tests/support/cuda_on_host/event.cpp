#include "tests/support/cuda_on_host/event.hpp"

#include <thread>
#include <utility>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

using Record = std::shared_ptr<EventRecord>;

/// Reference counts order threads, so every copy of a record is made and dropped unobserved.
class HeldRecord {
 public:
  explicit HeldRecord(cudaEvent_t event) {
    const Locked locked;
    record_ = event->latest;
  }
  ~HeldRecord() {
    const Unobserved unobserved;
    record_.reset();
  }
  HeldRecord(const HeldRecord&) = delete;
  HeldRecord& operator=(const HeldRecord&) = delete;

  const EventRecord* get() const { return record_.get(); }
  bool done() const {
    const Locked locked;
    return record_ == nullptr || record_->done;
  }
  void wait() const {
    Locked locked;
    if (record_ == nullptr) return;
    record_->is_done.wait(locked.lock(), [&] { return record_->done; });
  }

 private:
  Record record_;
};

cudaError_t create(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  const Locked locked;
  ++state().events;
  return cudaSuccess;
}

void finish(EventRecord& record) {
  happens_before(&record);
  const Locked locked;
  record.time = std::chrono::steady_clock::now();
  record.done = true;
  record.is_done.notify_all();
}

/// Of the record, on a stream's thread.
void wait_for(EventRecord& record) {
  {
    Locked locked;
    record.is_done.wait(locked.lock(), [&] { return record.done; });
  }
  happens_after(&record);
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  require_stream(stream);
  std::function<void()> work;
  {
    const Locked locked;
    event->latest = std::make_shared<EventRecord>();
    work = [record = event->latest] { finish(*record); };
  }
  enqueue(stream, "cudaEventRecord", std::move(work));
  return cudaSuccess;
}

cudaError_t make_wait(cudaStream_t stream, cudaEvent_t event) {
  require_stream(stream);
  std::function<void()> work;
  {
    const Locked locked;
    if (event->latest == nullptr || stream->number == state().deaf_stream) return cudaSuccess;
    work = [record = event->latest] { wait_for(*record); };
  }
  enqueue(stream, "cudaStreamWaitEvent", std::move(work));
  return cudaSuccess;
}

/// Who polls would keep a core from the threads that are waited for.
void give_way() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

cudaError_t elapsed(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const Locked locked;
  if (!start->timed || !end->timed || start->latest == nullptr || end->latest == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!start->latest->done || !end->latest->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(end->latest->time - start->latest->time).count();
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call("cudaEventCreate", [&] { return create(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call("cudaEventCreateWithFlags", [&] { return create(event, flags); });
}

/// Work that waits for the event keeps its record.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return releasing_call("cudaEventDestroy", [&] {
    const Locked locked;
    --state().events;
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] { return record(event, stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  return call("cudaStreamWaitEvent", [&] { return make_wait(stream, event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] {
    const HeldRecord held(event);
    if (!held.done()) {
      give_way();
      return cudaErrorNotReady;
    }
    if (held.get() != nullptr) happens_after(held.get());
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    const HeldRecord held(event);
    held.wait();
    if (held.get() != nullptr) happens_after(held.get());
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] { return elapsed(ms, start, end); });
}
