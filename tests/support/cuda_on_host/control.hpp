// The tests' side of CUDA on the host: its devices, faults, counts, and what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"

namespace cuda_on_host {

struct Machine {
  int devices = 1;
  std::size_t bytes = std::size_t{1} << 30U;  ///< memory of each device
  bool driver = true;                         ///< false: cudaErrorInsufficientDriver everywhere
  int driver_version = 13000;                 ///< CUDA's; older than CUDART_VERSION: too old
  std::string name = "CUDA on host";          ///< with " MIG " in it: instances of one GPU
  int major = 9;                              ///< compute capability
  int minor = 0;
  int multiprocessors = 4;
  std::size_t communicator_bytes = 0;  ///< what an NCCL communicator takes of a device
  std::size_t first_use_bytes = 0;     ///< and what at its first collective of each kind
  bool virtual_memory = true;          ///< the devices have virtual memory management
  std::size_t page_bytes = std::size_t{2} << 20U;  ///< of which that memory is a multiple
  /// What the program has code for, as has_code_for() reads it; "": every GPU.
  std::string architectures{};
  /// What a kernel takes of a device when that first launches it, after which it waits for the
  /// device, as CUDA may; 0: nothing, and no wait.
  std::size_t kernel_bytes = 0;
};

/// Starts anew: these devices, no faults, no counts, no log; hanging work goes on and ends. Nothing
/// may be left of what was created before, except streams and allocations that a test leaked.
void set_up(const Machine& machine);

/// Errors of the k-th call from now on.
struct Fault {
  std::string function{};  ///< such as "cudaMalloc"; empty: any, and the error is a cudaError_t
  std::uint64_t call = 1;  ///< the first call is 1
  int error = 0;        ///< a cudaError_t, cublasStatus_t or ncclResult_t, as the function returns
  bool sticky = false;  ///< every later call of that device fails too; a library's own error
                        ///< leaves cudaErrorLaunchFailure behind
  int device = -1;      ///< whose calls count; -1: of all devices
};

/// Calls that free or destroy do so even where a fault makes them return an error.
void inject(const Fault& fault);

/// Of the injected faults, how many have not struck.
int faults_left();

/// What the k-th call of `function` from now on enqueues does not begin before release_hangs(); an
/// NCCL call's not before its rank aborts either; ncclCommAbort itself does not return. For another
/// function that enqueues nothing, nothing happens.
void hang_at(const std::string& function, std::uint64_t call, int device = -1);
void release_hangs();

/// The k-th call of a collective with a reduction gives a wrong first element, on the calling rank
/// alone if `device` is said and is the rank's own.
void corrupt_at(const std::string& function, std::uint64_t call, int device = -1);

/// The k-th call of an NCCL function succeeds, its work hangs until its rank aborts, and
/// ncclCommGetAsyncError() of its communicator tells of `error`, an ncclResult_t.
void fail_later_at(const std::string& function, std::uint64_t call, int error, int device = -1);

/// In which order the blocks of a grid and the threads of a block begin, and go on where they have
/// waited. On a GPU it is any.
enum class Order { ascending, descending, shuffled };
/// From now on. Without it: what the variable CUDA_ON_HOST_ORDER says, or ascending.
void begin_in(Order order);

/// From now on every byte of new memory is 0xff, which makes floating-point numbers NaN. Without
/// it: where the variable CUDA_ON_HOST_POISON is set.
void poison_memory(bool on);

/// From now on new memory of devices is a fault to whoever touches it outside of kernels, copies
/// and libraries. Without it: where the variable CUDA_ON_HOST_GUARD is set.
/// @returns false if the processor or the kernel has no protection keys: then nothing changes
bool guard_memory(bool on);

/// From now on the stream that each device made as its n-th, from 0, waits for no event.
void deafen(int stream);

/// From now on what NCCL does on a stream begins up to so many microseconds late, at random.
void delay_collectives(int most_us);

/// How many have been delayed in this process.
std::uint64_t delayed_collectives();

/// Calls since set_up(), also those that failed. An empty name: of all functions.
std::uint64_t calls(const std::string& function, int device = -1);

/// The names of the kernels that a device has launched since set_up(), in the order of each one's
/// first launch.
std::vector<std::string> loaded_kernels(int device = 0);

/// What a stream holds at most: a call that would queue more does not return before there is room,
/// as CUDA's do not.
constexpr std::uint64_t kMostQueued = 1024;
/// Calls that had to wait for that since set_up().
std::uint64_t full_queues();

/// From now on the names of what runs on each stream are kept, in order: a kernel's own name, or
/// the function that enqueued it.
void record_log(bool on);
std::vector<std::string> log_of(cudaStream_t stream);

/// What lives at this moment, on all devices.
struct Live {
  int allocations = 0;
  std::size_t bytes = 0;  ///< of allocations and pages
  int pages = 0;          ///< of cuMemCreate
  int ranges = 0;         ///< of cuMemAddressReserve
  int host_allocations = 0;
  int streams = 0;
  int events = 0;
  int communicators = 0;
  int library_handles = 0;  ///< cublasLt's
  friend bool operator==(const Live&, const Live&) = default;
};
Live live();

}  // namespace cuda_on_host
