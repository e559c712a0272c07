#include "kernels/cuda/collectives/communicator_maker.hpp"

#include <chrono>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>

#include "core/base/text.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/collectives/check_sums.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

Bytes free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  DSTUNE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

/// From its making to add_to(): time, and the memory of the device that is gone.
class CostMeter {
 public:
  void add_to(CommunicatorCost& cost) const {
    const Bytes left = free_memory();
    cost.bytes += free_ > left ? free_ - left : 0;
    cost.time += std::chrono::duration<Seconds>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin_ = Clock::now();
  Bytes free_ = free_memory();
};

}  // namespace

// Between experiments the piece of buffers is nobody's: NCCL finds all the memory that there is,
// and the next piece leaves what NCCL then has. To try again after a failure would take a vote, for
// which the others would first have to give up.
std::unique_ptr<NcclCommunicator> CommunicatorMaker::make() {
  if (gpu_->in_use() == 0) gpu_->release_memory();
  const CostMeter meter;
  auto communicator = std::make_unique<NcclCommunicator>(agree_on_id(), group_->rank(),
                                                         group_->size(), waiting(), *endings_);
  std::vector<int> everyone(static_cast<std::size_t>(group_->size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  check(*communicator, everyone);
  meter.add_to(cost_);
  return communicator;
}

NcclCommunicator& CommunicatorMaker::make_part(NcclCommunicator& whole,
                                               const std::vector<int>& ranks, int own) {
  const CostMeter meter;
  NcclCommunicator& part = whole.make_part(ranks, own, waiting());
  if (part.get() != nullptr) check(part, ranks);
  meter.add_to(cost_);
  return part;
}

Waiting CommunicatorMaker::waiting() const {
  return {[group = group_] { group->poll(); }, limit_};
}

ncclUniqueId CommunicatorMaker::agree_on_id() const {
  ncclUniqueId id{};
  if (group_->rank() == 0) {
    const std::string known_warning = last_nccl_warning();
    check_nccl(nccl().GetUniqueId(&id), "ncclGetUniqueId", known_warning, __FILE__, __LINE__);
  }
  group_->broadcast(std::as_writable_bytes(std::span(id.internal)), 0);
  return id;
}

void CommunicatorMaker::check(const NcclCommunicator& communicator,
                              const std::vector<int>& ranks) const {
  const std::vector<int> members = group_->members();
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) {
    names.push_back(std::to_string(members.at(static_cast<std::size_t>(rank))));
  }
  check_sums(
      communicator, *gpu_,
      concat(group_->name_of_this_rank(), ", of the communicator of ranks ", join(names, ", ")),
      waiting());
}

}  // namespace dstune::cuda
