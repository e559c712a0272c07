// Makes the communicators of one group, with a look at their sums and at what they cost.
#pragma once

#include <memory>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/group.hpp"
#include "kernels/cuda/collectives/nccl_communicator.hpp"
#include "kernels/cuda/device/gpu.hpp"

namespace dstune::cuda {

/// What making communicators took.
struct CommunicatorCost {
  Seconds time = 0;
  Bytes bytes = 0;  ///< of device memory, their connections included
};

/// Every wait answers the dispatcher (Group::poll()).
class CommunicatorMaker {
 public:
  /// All arguments must outlive this object.
  /// @param limit  of each wait
  CommunicatorMaker(Gpu& gpu, Group& group, EndingCommunicators& endings, Seconds limit)
      : gpu_(&gpu), group_(&group), endings_(&endings), limit_(limit) {}

  /// Collective over the group. Gives the GPU's piece of memory back first, unless it is in use.
  /// @throws WrongSumsError, ExperimentAborted, what check_nccl() throws
  std::unique_ptr<NcclCommunicator> make();
  /// Collective over `whole`, the group's; as NcclCommunicator::make_part(), and throws as make().
  NcclCommunicator& make_part(NcclCommunicator& whole, const std::vector<int>& ranks, int own);

  Group& group() const noexcept { return *group_; }
  Waiting waiting() const;
  /// The cost of all that this object has made.
  const CommunicatorCost& cost() const noexcept { return cost_; }

 private:
  ncclUniqueId agree_on_id() const;
  void check(const NcclCommunicator& communicator, const std::vector<int>& ranks) const;

  Gpu* gpu_;
  Group* group_;
  EndingCommunicators* endings_;
  Seconds limit_;
  CommunicatorCost cost_;
};

}  // namespace dstune::cuda
