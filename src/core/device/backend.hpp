// The backend of a process, for as long as the process lives: its hardware, and the source of its
// collectives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host/memory_bounds.hpp"
#include "core/base/units.hpp"
#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/group.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/product_workspace.hpp"

namespace dstune {

/// Memory of a device that other things take than the buffers of an experiment.
struct MemoryReserve {
  std::string what;  ///< "CUDA context", "libraries' workspaces", "NCCL's buffers"
  Bytes bytes = 0;
  bool is_measured = false;  ///< true: on this device; else it is an estimate
  /// Only where sizes are counted exactly: an allocator's segments would hold it.
  bool only_if_exact = false;

  bool operator==(const MemoryReserve&) const = default;
};

/// Something that ranks of a group should have alike, such as a library's version or a variable of
/// the environment that the library reads.
struct CommonSetting {
  std::string name;         ///< "NCCL", "NCCL_ALGO"
  std::string value;        ///< "2.28.9", "Ring"
  bool must_agree = false;  ///< false: it may be meant to differ, so that users are only told

  bool operator==(const CommonSetting&) const = default;
};

/// The hardware of one backend, as one process sees it.
struct DeviceInfo {
  std::string backend;     ///< "cpu", "sim", "cuda"
  std::string name;        ///< "AMD EPYC 9534 64-Core Processor", "NVIDIA H200"
  Bytes memory = 0;        ///< all memory that the device has
  Bytes free_memory = 0;   ///< the part of it that was free when the process started
  bool is_shared = false;  ///< with the host's processes and the system; else this process's own
  std::string unusable;    ///< why nothing can be trained on it; "": it can be used
  /// The preset of what DeepSpeed's host code is taken to cost there, where the user does not say.
  std::string host_overhead = std::string(kCudaOverhead);
  std::string id = {};  ///< a GPU's, the same for every process that sees it: "GPU-5d3b..."; or ""
  int index = 0;        ///< the GPU's place among those that the process sees
  int seen = 0;         ///< number of GPUs that the process sees
  /// True: the default memory limit is the free memory less `reserves`; else it is all that the
  /// device has.
  bool limit_is_free_memory = false;
  std::vector<MemoryReserve> reserves = {};  ///< parts of free_memory that are still to be taken
  std::vector<MemoryBound> bounds = {};      ///< where it is shared: less than all, beside `memory`
  std::string libraries = {};  ///< libraries that multiply matrices, with versions; "" if not known
  /// In which way its fp32 products are not as fast as those of torch, which they stand for; "" if
  /// they are.
  std::string fp32_caveat = {};
  std::vector<CommonSetting> common = {};   ///< what its collectives want alike on all ranks
  ProductWorkspace product_workspace = {};  ///< what PyTorch gives to products there
  /// Driver and libraries with versions and files, for whoever looks for a fault: "NCCL: 2.28.9
  /// (/usr/lib/libnccl.so.2)".
  std::vector<std::string> found = {};
  /// A part of a GPU that is divided (Multi-Instance GPU), of which a process sees one.
  bool is_mig_instance = false;
  /// Whoever trains on it in 16 bits would take bf16: a GPU whose tensor cores know the type
  /// (CUDA's compute capability 8.0). On a CPU that is anybody's guess.
  bool trains_in_bf16 = false;

  bool operator==(const DeviceInfo&) const = default;
};

/// A worker's place among the workers of its host, which decides what hardware is its own.
struct Placement {
  int rank = 1;             ///< among all ranks; rank 0 tunes, and is no worker
  int local_rank = 0;       ///< from 0, without rank 0, which itself has -1
  int local_size = 1;       ///< workers on the host
  bool is_one_host = true;  ///< whether all ranks are on it
  bool shares_gpu = false;  ///< with other workers, as the user allowed
  bool is_worker = false;   ///< it will train: whoever asks for its hardware may take some of it
};

/// The part of a process's device that one experiment may use.
struct DeviceShare {
  Bytes memory_limit = 0;
  /// Cores of the host, for what is computed on them: all of it on a CPU, what is offloaded on
  /// every device. 0: one.
  int threads = 0;
  /// Called again and again while device() waits for the work that the experiment before has left;
  /// it may throw (ExperimentAborted).
  std::function<void()> meanwhile = {};
};

/// The share of a device that is only asked what it would need.
inline const DeviceShare kOnlyAsked{.memory_limit = 1, .threads = 0};

/// Makes collectives of tensors in host memory over a group's ranks, for a backend without its own.
/// The device must outlive them.
using HostCollectives = std::function<std::unique_ptr<Collectives>(Device&)>;

/// A backend is made once per process. What is expensive to make (contexts, handles, communicators,
/// the memory of a library) is kept from experiment to experiment; the outcome of an experiment
/// does not depend on those before it.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// The device for the next experiment, with nothing allocated on it. It is valid until the next
  /// call, before which all buffers of this experiment must be gone.
  /// @throws Error  if the hardware refuses
  virtual Device& device(const DeviceShare& share) = 0;

  /// The data plane of the experiment for which device() was called last; collective over `group`,
  /// which must outlive the result.
  /// @throws Error  if the hardware refuses
  virtual std::unique_ptr<Collectives> collectives(Group& group,
                                                   const HostCollectives& over_host) = 0;
};

/// The backends of this build, on this machine.
struct LocalBackends {
  std::vector<DeviceInfo> devices;  ///< one per backend, the best first, whether usable or not
  /// Makes the backend of this name for a caller who only asks what it would need, and takes no
  /// part of the hardware. Null means a GPU with fused kernels, whichever it is.
  /// @throws Error  if there is no such backend
  std::function<std::unique_ptr<Backend>(const std::string& name)> make_to_ask;
  /// The device of the backend of this name as a worker at `placement` finds it, with what is free
  /// of it and what else is taken of that. Takes a part of a GPU until the process ends.
  /// @throws Error  if there is no such backend
  std::function<DeviceInfo(const std::string& name, const Placement& placement)> measure = {};
};

}  // namespace dstune
