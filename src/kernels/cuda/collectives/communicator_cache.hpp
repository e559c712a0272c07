// NCCL's communicators, kept from experiment to experiment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/collectives.hpp"
#include "core/device/group.hpp"
#include "kernels/cuda/collectives/communicator_maker.hpp"
#include "kernels/cuda/collectives/nccl_collectives.hpp"
#include "kernels/cuda/collectives/nccl_communicator.hpp"
#include "kernels/cuda/collectives/nccl_log.hpp"
#include "kernels/cuda/collectives/recent_groups.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

struct CommunicatorLimits {
  std::size_t most = 4;             ///< groups whose communicators are kept
  Bytes reserve = Bytes{2} << 30U;  ///< device memory for all that are kept
  Seconds making = 120;             ///< of each wait while one is made or a call is queued
  Seconds ending = 20;              ///< of one that has failed; then the GPU is lost
  Seconds making_room = 1;          ///< for one that is dropped, before it is left to itself
};

/// One communicator per group of ranks, with those of its parts. A group's ranks agree whether they
/// have it. One whose experiment ended with an exception is ended and made anew the next time.
class CommunicatorCache {
 public:
  /// @param log  what NCCL writes; begin() is to come before NCCL's first call
  explicit CommunicatorCache(const CommunicatorLimits& limits = {}, NcclLog log = NcclLog::begin());
  ~CommunicatorCache();
  CommunicatorCache(const CommunicatorCache&) = delete;
  CommunicatorCache& operator=(const CommunicatorCache&) = delete;

  /// Collective over `group`, which must outlive the result, as must `device` and this. Making a
  /// communicator takes seconds and is logged on the group's rank 0.
  /// @throws DeviceLostError  if the end of a failed one has not come
  /// @throws WrongSumsError, ExperimentAborted, what check_nccl() throws
  std::unique_ptr<Collectives> collectives(Group& group, CudaDevice& device);

  /// @throws DeviceLostError  if the end of a failed one has not come
  void check() const;

  /// Device memory of all that are kept.
  Bytes bytes() const { return recent_.bytes(); }
  /// The memory that the reserve allows beside that.
  Bytes bytes_to_come() const { return limits_.reserve - std::min(limits_.reserve, bytes()); }

 private:
  using Members = RecentGroups::Members;

  struct Kept {
    std::unique_ptr<NcclCommunicator> communicator;
    std::string network;  ///< as Collectives::network()
  };

  Kept& find_or_make(const CommunicatorMaker& maker);
  Kept& make(CommunicatorMaker maker, const Members& members);
  std::string report(const CommunicatorMaker& maker);
  void drop(const std::vector<Members>& groups, const CommunicatorMaker& maker);
  void wait_for_the_end(const CommunicatorMaker& maker) noexcept;

  CommunicatorLimits limits_;
  NcclLog log_;
  RecentGroups recent_;
  EndingCommunicators endings_;
  std::map<Members, Kept> communicators_;
  std::string lost_;  ///< why the GPU is, or ""
  bool has_warned_ = false;
};

}  // namespace dstune::cuda
