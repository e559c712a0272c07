// The data plane of one experiment: collectives over its ranks, each with a line in the ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/units.hpp"
#include "core/train/collective_kind.hpp"
#include "core/train/device.hpp"
#include "core/train/tensor.hpp"

namespace dstune {

enum class ReduceOp { sum, max };

/// Every call is collective over the group, with the same arguments but for the data, in the same
/// order on every rank. With one rank nothing is sent (results are right, calls are counted). Calls
/// go into the device's ledger.
/// A call returns when it is queued on `stream`; on a CPU when it is done.
///
/// Reductions of 16-bit types round once per addition, as NCCL's do.
class Collectives {
 public:
  Collectives(Device& device, int rank, int size) : device_(&device), rank_(rank), size_(size) {}
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  void all_reduce(Tensor inout, ReduceOp op, Purpose purpose, Stream stream);
  /// Only `root` gets the result; on other ranks `inout` is undefined afterwards.
  void reduce(Tensor inout, ReduceOp op, int root, Purpose purpose, Stream stream);
  /// `in` has size() * out.numel elements; rank r gets the sum of everybody's r-th part.
  /// `out` may be this rank's part of `in` (in place); `in` is undefined afterwards.
  void reduce_scatter(Tensor in, Tensor out, ReduceOp op, Purpose purpose, Stream stream);
  /// `out` has size() * in.numel elements; `in` may be this rank's part of `out` (in place).
  void all_gather(Tensor in, Tensor out, Purpose purpose, Stream stream);
  void broadcast(Tensor inout, int root, Purpose purpose, Stream stream);
  /// `in` and `out` have equally many elements, a multiple of size(), and do not overlap: the p-th
  /// part of `in` goes to rank p, where it becomes the part of `out` of the rank it comes from.
  void all_to_all(Tensor in, Tensor out, Purpose purpose, Stream stream);

  /// A host scalar, combined over the group: the norm and the overflow flag (a byte) of a step.
  /// Counted as an all-reduce of one element, and as its way to the host. Waits for the result.
  /// @param dtype  as which DeepSpeed sends a norm
  double all_reduce_scalar(double value, ReduceOp op, Purpose purpose, DType dtype = DType::fp32);

  /// The collectives of a part of the group, of which this rank is one; rank i there is `ranks[i]`
  /// here. All of them call it with the same list. Their calls, in both groups, come in one order
  /// on all ranks that share them. Local: nothing is sent. The result must not outlive this.
  /// @throws std::invalid_argument  unless `ranks` are ranks of the group, this one among them
  std::unique_ptr<Collectives> sub_group(const std::vector<int>& ranks);

 protected:
  Device& device() const noexcept { return *device_; }

 private:
  virtual void do_all_reduce(Tensor inout, ReduceOp op, Stream stream) = 0;
  virtual void do_reduce(Tensor inout, ReduceOp op, int root, Stream stream) = 0;
  virtual void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op, Stream stream) = 0;
  virtual void do_all_gather(Tensor in, Tensor out, Stream stream) = 0;
  virtual void do_broadcast(Tensor inout, int root, Stream stream) = 0;
  virtual void do_all_to_all(Tensor in, Tensor out, Stream stream) = 0;
  virtual double do_all_reduce_scalar(double value, ReduceOp op) = 0;
  /// @param own  place of this rank in `ranks`
  virtual std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) = 0;

  friend class CoalescedCalls;

  template <class Call>
  Seconds counted(CollectiveLine line, Call call);

  Device* device_;
  int rank_;
  int size_;
  bool coalesces_ = false;
  bool has_launched_ = false;  // the first of coalesced calls
};

/// While one exists the calls of `collectives`, which have one kind, type, purpose and stream, are
/// one launch, as in torch's coalescing manager: one call of the ledger, one HostEvent.
class CoalescedCalls {
 public:
  explicit CoalescedCalls(Collectives& collectives) : collectives_(collectives) {
    collectives_.coalesces_ = true;
    collectives_.has_launched_ = false;
  }
  ~CoalescedCalls() { collectives_.coalesces_ = false; }
  CoalescedCalls(const CoalescedCalls&) = delete;
  CoalescedCalls& operator=(const CoalescedCalls&) = delete;

 private:
  Collectives& collectives_;
};

}  // namespace dstune
