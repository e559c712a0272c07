// One NCCL communicator with those of its parts.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "core/base/units.hpp"
#include "kernels/cuda/collectives/ending_communicators.hpp"
#include "kernels/cuda/device/gpu.hpp"

namespace dstune::cuda {

/// How to wait for what other ranks have to do too.
struct Waiting {
  std::function<void()> meanwhile;  ///< called again and again; may throw (ExperimentAborted)
  Seconds limit = 0;                ///< then the wait ends with NcclError
};

/// Does not block: a call may still be under way when it returns, and settle() comes before the
/// next. Used by one thread.
/// All calls throw what check_nccl() throws and what `waiting` throws; then only its end is left.
class NcclCommunicator {
 public:
  /// Collective over the `size` ranks; `id` is the same on all of them.
  /// @param endings  where this one and its parts end; must outlive it
  NcclCommunicator(const ncclUniqueId& id, int rank, int size, const Waiting& waiting,
                   EndingCommunicators& endings);
  /// Local: begins the end and does not wait for it. ncclCommDestroy would wait for the other ranks
  /// of the host, which are busy with something else.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Null for a part of one rank.
  ncclComm_t get() const noexcept { return *cell_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Queues an exchange of `count` elements with every rank, itself included, as one group.
  void all_to_all(const void* in, void* out, std::size_t count, ncclDataType_t type,
                  cudaStream_t stream) const;

  /// Waits until the last call is no longer under way.
  void settle(const char* call, const Waiting& waiting) const;
  /// Waits until `event` has passed, with an eye on errors.
  void wait_for(const Gpu& gpu, cudaEvent_t event, const Waiting& waiting) const;
  /// @throws what check_nccl() throws  if this one or a part of it has failed
  void check() const;
  /// NCCL's last warning when the last call was known to be well: no reason of a later error.
  const std::string& known_warning() const noexcept { return known_warning_; }
  /// check() that says so.
  bool has_failed() const noexcept;

  /// The communicator of a part that has been made; else nullptr.
  NcclCommunicator* part(const std::vector<int>& ranks) const;
  /// Makes it; collective over this communicator, each rank with its own part.
  /// @param ranks  by rank of the part: the rank here
  /// @param own    place of this rank in it
  NcclCommunicator& make_part(const std::vector<int>& ranks, int own, const Waiting& waiting);

 private:
  NcclCommunicator(int rank, int size, EndingCommunicators& endings);

  void collect(std::vector<CommunicatorCell>& cells);

  EndingCommunicators* endings_;
  CommunicatorCell cell_;
  bool is_made_ = false;  ///< NCCL no longer writes to the cell
  int rank_;
  int size_;
  mutable std::string known_warning_;
  std::map<std::vector<int>, std::unique_ptr<NcclCommunicator>> parts_;
};

}  // namespace dstune::cuda
