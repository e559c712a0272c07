// Collectives of one rank without its peers: they are counted and not carried out.
#pragma once

#include "core/device/collectives.hpp"

namespace dstune {

/// Collectives for any rank of any group on one machine: calls and bytes are counted as those of a
/// real group would be, nothing is sent, and no data changes.
class DryCollectives : public Collectives {
 public:
  /// @throws std::invalid_argument  unless 0 <= rank < size
  DryCollectives(Device& device, int rank, int size);

 protected:
  /// Called once by every collective.
  /// @param bytes  of the full (unsharded) message
  virtual void account(CollectiveKind kind, Bytes bytes);
  /// Called once by every collective of tensors. `in` is undefined afterwards but in a gather.
  virtual void touch(CollectiveKind kind, Tensor in, Tensor out);

 private:
  void run(CollectiveKind kind, Tensor in, Tensor out);
  void do_all_reduce(Tensor inout, ReduceOp op) override;
  void do_reduce(Tensor inout, ReduceOp op, int root) override;
  void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) override;
  void do_all_gather(Tensor in, Tensor out) override;
  void do_broadcast(Tensor inout, int root) override;
  void do_all_to_all(Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;
};

}  // namespace dstune
