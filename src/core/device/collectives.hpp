// The data plane of one experiment: collectives over its ranks, each of which has a line in the
// ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/device.hpp"
#include "core/device/ledger/collective_kind.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

enum class ReduceOp { sum, max };

/// Every call is collective over the group, with the same arguments but for the data, in the same
/// order on every rank. With one rank nothing is sent (results are right, and calls are counted).
/// Calls are entered in the device's ledger.
/// A call starts when what the current stream holds now is done, and runs on the communication
/// stream. It returns when it is queued, on a CPU when it is done; whoever uses its tensors must
/// wait for the event that it returns.
///
/// uint8 tensors are only reduced to their maximum, and int8 tensors not at all. Reductions of
/// 16-bit types round once per addition, as NCCL's do.
class Collectives {
 public:
  Collectives(Device& device, int rank, int size) : device_(&device), rank_(rank), size_(size) {}
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// The network that carries the group's messages between its hosts, as the library names it
  /// ("IB", "Socket"). "" on one host, on ranks other than 0, and if the library does not say.
  virtual std::string network() const { return ""; }

  Event all_reduce(Tensor inout, ReduceOp op, Purpose purpose);
  /// Only `root` gets the result; on other ranks `inout` is undefined afterwards.
  Event reduce(Tensor inout, ReduceOp op, int root, Purpose purpose);
  /// `in` has size() * out.numel elements; rank r gets the sum of the r-th parts of all ranks.
  /// `out` may be this rank's part of `in` (in place); `in` is undefined afterwards.
  Event reduce_scatter(Tensor in, Tensor out, ReduceOp op, Purpose purpose);
  /// `out` has size() * in.numel elements; `in` may be this rank's part of `out` (in place).
  Event all_gather(Tensor in, Tensor out, Purpose purpose);
  Event broadcast(Tensor inout, int root, Purpose purpose);
  /// `in` and `out` have equally many elements, a multiple of size(), and do not overlap. The p-th
  /// part of `in` goes to rank p, which puts it into that part of its `out` which belongs to the
  /// sender.
  Event all_to_all(Tensor in, Tensor out, Purpose purpose);

  /// The collectives of a part of the group, of which this rank is a member; rank i there is
  /// `ranks[i]` here. Every rank of the group calls it with a part, and all ranks of a part with
  /// the same list. The parts of one division do not overlap, and a list always belongs to the same
  /// division: the first call for a part may need all ranks of the group. Ranks that share both
  /// groups make their calls, in both, in one order. Local: nothing is sent. The result must not
  /// outlive this object.
  /// @throws std::invalid_argument  unless `ranks` are ranks of the group, this one among them
  std::unique_ptr<Collectives> sub_group(const std::vector<int>& ranks);

 protected:
  Device& device() const noexcept { return *device_; }

 private:
  virtual void do_all_reduce(Tensor inout, ReduceOp op) = 0;
  virtual void do_reduce(Tensor inout, ReduceOp op, int root) = 0;
  virtual void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) = 0;
  virtual void do_all_gather(Tensor in, Tensor out) = 0;
  virtual void do_broadcast(Tensor inout, int root) = 0;
  virtual void do_all_to_all(Tensor in, Tensor out) = 0;
  /// @param own  the place of this rank in `ranks`
  virtual std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) = 0;

  /// Called before and after the calls of CoalescedCalls, on the communication stream: NCCL's group
  /// of calls.
  virtual void do_begin_coalescing() {}
  virtual void do_end_coalescing() {}

  friend class CoalescedCalls;
  friend class PipelinedCalls;

  template <class Call>
  Event counted(CollectiveLine line, Call call);
  void begin_launch(Purpose purpose);
  template <class Call>
  Event run(const CollectiveLine& line, Call call);
  template <class Call>
  Event run_coalesced(Call call);
  void begin_coalescing();
  Event end_coalescing();
  void forget_coalescing() noexcept {
    coalesces_ = false;
    launched_.reset();
  }

  Device* device_;
  int rank_;
  int size_;
  bool coalesces_ = false;
  bool pipelines_ = false;
  std::optional<CollectiveLine> launched_;  // the first of coalesced calls
  Event coalesced_since_;
  Seconds launch_time_ = 0;  // time that the host took for the launch before
};

/// Until end(), the calls of `collectives` are one launch, as in torch's coalescing manager: one
/// call in the ledger, and one HostEvent. They must have one kind, type, purpose and stream. Only
/// the event of end() counts.
class CoalescedCalls {
 public:
  explicit CoalescedCalls(Collectives& collectives) : collectives_(collectives) {
    collectives_.begin_coalescing();
  }
  ~CoalescedCalls() { collectives_.forget_coalescing(); }
  CoalescedCalls(const CoalescedCalls&) = delete;
  CoalescedCalls& operator=(const CoalescedCalls&) = delete;

  Event end() { return collectives_.end_coalescing(); }

 private:
  Collectives& collectives_;
};

/// While it lives, the calls of `collectives` begin one after the other before any is waited for,
/// so that a library's latencies run beside each other (HostEvent::pipelined_collective).
class PipelinedCalls {
 public:
  explicit PipelinedCalls(Collectives& collectives) : collectives_(collectives) {
    collectives_.pipelines_ = true;
  }
  ~PipelinedCalls() { collectives_.pipelines_ = false; }
  PipelinedCalls(const PipelinedCalls&) = delete;
  PipelinedCalls& operator=(const PipelinedCalls&) = delete;

 private:
  Collectives& collectives_;
};

}  // namespace dstune
