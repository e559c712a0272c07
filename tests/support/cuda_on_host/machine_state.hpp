// The double's state: one lock for all of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/observation.hpp"

namespace cuda_on_host {

struct DeviceState {
  std::size_t used = 0;
  int sticky_error = 0;
  int streams_made = 0;
  std::set<const void*> kernels{};    ///< that are loaded
  std::vector<const void*> loaded{};  ///< the same, in order
  const char* nccl_warning = "";      ///< NCCL's last in the process of that device
};

struct Allocation {
  int device = 0;
  std::size_t bytes = 0;
  bool is_guarded = false;
};

/// Memory of cuMemCreate.
struct Pages {
  int device = 0;
  std::size_t bytes = 0;
  bool has_handle = true;
  int mappings = 0;
};

/// Addresses of cuMemAddressReserve.
struct AddressRange {
  std::size_t bytes = 0;
  unsigned long long pages = 0;  ///< what is mapped there; 0: nothing
  bool is_accessible = false;
};

struct PendingFault {
  Fault fault;
  std::uint64_t seen = 0;
};

/// What goes wrong with a call's work after the call.
struct CallEffects {
  bool hangs = false;
  bool corrupts = false;
  int async_error = 0;  ///< of its communicator
};

struct PendingEffect {
  std::string function;
  int device = -1;
  std::uint64_t left = 0;  ///< calls until it strikes
  CallEffects effects;
};

struct MachineState {
  std::mutex mutex;
  std::condition_variable changed;  ///< some work ended, an event was recorded, a rank arrived, ...

  Machine machine;
  bool has_code = true;  ///< for its devices
  std::vector<DeviceState> devices{1};
  std::map<void*, Allocation> allocations;
  std::map<void*, std::size_t> host_allocations;
  std::map<unsigned long long, Pages> pages;  ///< by handle
  unsigned long long last_pages = 0;
  std::map<void*, AddressRange> ranges;
  std::set<cudaStream_t> streams;
  std::vector<cudaStream_t> closed_streams;  ///< destroyed; their threads are not yet joined
  int events = 0;
  int communicators = 0;
  int library_handles = 0;
  std::map<std::pair<const void*, int>, int> shared_limits;  ///< of a kernel on a device

  std::vector<PendingFault> faults;
  std::vector<PendingEffect> effects;
  std::uint64_t hang_releases = 0;
  std::map<std::pair<std::string, int>, std::uint64_t> calls;
  std::uint64_t full_queues = 0;  ///< calls that found one
  bool log = false;
  int deaf_stream = -1;  ///< waits for nothing
};

/// Lives for ever, since threads of streams may outlive main().
MachineState& state();

/// The lock, held; the thread sanitizer does not see it.
class Locked {
 public:
  Locked() : lock_(state().mutex) {}

  template <class Condition>
  void wait_until(Condition condition) {
    state().changed.wait(lock_, condition);
  }

  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  Unobserved unobserved_;
  std::unique_lock<std::mutex> lock_;
};

/// As poison_memory() said. @param memory  new, as a kernel is to see it
void poison(void* memory, std::size_t bytes);

/// The calling thread's device.
int& current_device();

}  // namespace cuda_on_host
