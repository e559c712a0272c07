// The data plane of one experiment: collectives over its ranks, counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"
#include "core/train/device.hpp"
#include "core/train/tensor.hpp"

namespace dstune {

enum class CollectiveKind { all_reduce, reduce, reduce_scatter, all_gather, broadcast, all_to_all };

constexpr std::size_t kCollectiveKinds = 6;

std::string_view name_of(CollectiveKind kind);

enum class ReduceOp { sum, max };

/// What was communicated by one kind of collective. `bytes` are those of the full (unsharded)
/// message X: of what is reduced, of what everybody has after a gather, or of what one rank gives
/// (and gets) in an all-to-all.
struct CollectiveCount {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  Bytes bytes = 0;

  bool operator==(const CollectiveCount&) const = default;
};

using CollectiveCounts = std::array<CollectiveCount, kCollectiveKinds>;

/// Bytes one rank sends for a message of `bytes` with the ring algorithm (zero-step.md 3):
/// all-reduce 2 (N-1)/N X, reduce-scatter, all-gather and all-to-all (N-1)/N X, reduce and
/// broadcast X; 0 for N = 1.
double wire_bytes(CollectiveKind kind, Bytes bytes, int group_size);

/// Every call is collective over the group, with the same arguments but for the data, in the same
/// order on every rank. With one rank nothing is sent (results are right, calls are counted).
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

  void all_reduce(Tensor inout, ReduceOp op, Stream stream);
  /// Only `root` gets the result; on other ranks `inout` is undefined afterwards.
  void reduce(Tensor inout, ReduceOp op, int root, Stream stream);
  /// `in` has size() * out.numel elements; rank r gets the sum of everybody's r-th part.
  /// `out` may be this rank's part of `in` (in place); `in` is undefined afterwards.
  void reduce_scatter(Tensor in, Tensor out, ReduceOp op, Stream stream);
  /// `out` has size() * in.numel elements; `in` may be this rank's part of `out` (in place).
  void all_gather(Tensor in, Tensor out, Stream stream);
  void broadcast(Tensor inout, int root, Stream stream);
  /// `in` and `out` have equally many elements, a multiple of size(), and do not overlap: the p-th
  /// part of `in` goes to rank p, where it becomes the part of `out` of the rank it comes from.
  void all_to_all(Tensor in, Tensor out, Stream stream);

  /// A host scalar, combined over the group: the norm (fp32) and the overflow flag of a step.
  /// Counted as an all-reduce of one element of `element_size` bytes. Waits for the result.
  double all_reduce_scalar(double value, ReduceOp op, Bytes element_size = 4);

  const CollectiveCounts& counts() const noexcept { return counts_; }
  /// Seconds inside calls since reset(), by the device's clock.
  Seconds time() const noexcept { return time_; }
  void reset_counts() noexcept;

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

  template <class Call>
  void counted(CollectiveKind kind, std::int64_t elements, Bytes bytes, Call call);

  Device* device_;
  int rank_;
  int size_;
  CollectiveCounts counts_{};
  Seconds time_ = 0;
};

}  // namespace dstune
