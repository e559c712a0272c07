// Collectives on CPU tensors over an experiment's MPI ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/device/collectives.hpp"
#include "mpi/collectives/mpi_group.hpp"

namespace dstune {

/// Collectives by rings and chains of point-to-point messages, as in NCCL: each rank sends and
/// receives what wire_bytes() says, and partial sums are rounded to the tensor's type once per
/// addition. All ranks get the same bits. A collective is done when its call returns (a CPU has one
/// stream).
///
/// MPI's own collectives are not used, because a non-blocking collective that an abort interrupts
/// cannot be cancelled and its buffers may not be freed; and Open MPI's collectives take scratch of
/// the message's size, which no budget counts.
///
/// Any call throws ExperimentAborted if rank 0 ends the experiment.
class MpiCollectives final : public Collectives {
 public:
  /// `group` must outlive this object.
  MpiCollectives(Device& device, MpiGroup& group);

 private:
  void do_all_reduce(Tensor inout, ReduceOp op) override;
  void do_reduce(Tensor inout, ReduceOp op, int root) override;
  void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) override;
  void do_all_gather(Tensor in, Tensor out) override;
  void do_broadcast(Tensor inout, int root) override;
  void do_all_to_all(Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  /// Collectives over a part of the group. It needs no communicator of its own, since messages
  /// between two ranks arrive in the order of their calls.
  MpiCollectives(Device& device, MpiGroup& group, std::vector<int> members, int own);

  bool is_whole() const { return size() == group_->size(); }
  int member(int place) const { return members_[static_cast<std::size_t>(place)]; }
  void broadcast_from(int root, std::size_t bytes, int slot);
  void all_reduce_number(Tensor inout, ReduceOp op);

  MpiGroup* group_;
  std::vector<int> members_;  // ranks in the MpiGroup
};

}  // namespace dstune
