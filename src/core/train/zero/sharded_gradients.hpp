// Stage 3: gradients on their way from autograd to this rank's shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/train/collectives.hpp"
#include "core/train/device.hpp"
#include "core/train/step_config.hpp"
#include "core/train/zero/passes.hpp"
#include "core/train/zero/shard_layout.hpp"

namespace dstune {

/// DeepSpeed's bucket of stage 3 and what it does when the bucket is full (zero-step.md 3.3).
///
/// With contiguous_gradients a gradient is copied into a buffer of reduce_bucket_size elements of
/// the communication dtype and freed; one that does not fit even the empty buffer waits as it is.
/// Without, all of them wait as they are. A flush is one reduce-scatter of a rank-major copy with
/// padded shards (of the tensor itself if it is alone and N divides it), or, with reduce_scatter =
/// false and everything in the buffer, an all-reduce of the buffer.
///
/// The shards live in one buffer of the accumulation dtype, category gradients, always.
class ShardedGradients {
 public:
  /// @param stream  of the reductions
  ShardedGradients(const StepConfig& config, Device& device, Collectives& collectives,
                   const ShardLayout& layout, Stream stream);

  /// @param first  of the micro-steps of a step: shards are overwritten, not added to
  void begin_micro_step(bool first) { is_first_ = first; }
  /// The gradient of `tensor`, in the model dtype.
  void add(std::size_t tensor, Buffer gradient);
  void flush();

  /// All of this rank's shards, and the one of a tensor, in the accumulation dtype.
  Tensor shards() const { return shards_.tensor(config_.accumulation_dtype()); }
  Tensor shard(std::size_t tensor) const {
    return shards().slice(layout_.offset(tensor), layout_.shard(tensor));
  }

 private:
  struct Entry {
    std::size_t tensor = 0;
    Tensor gradient;  // in the bucket, in `own` or in `cast`
    Buffer own;
    Buffer cast;
  };

  std::int64_t capacity() const { return config_.reduce_bucket_size; }
  Buffer temporary(std::int64_t count, DType dtype) const {
    return make_buffer(device_, MemoryCategory::temporaries, count, dtype);
  }
  void scatter();
  void cast_to_message();
  void interleave(Tensor flat) const;
  void average_whole();
  void take_parts(Tensor own);
  void take_slices(Tensor whole);
  void take(std::size_t tensor, Tensor averaged);

  const StepConfig& config_;
  Device& device_;
  Collectives& collectives_;
  const ShardLayout& layout_;
  Stream stream_;
  Passes passes_;
  Buffer bucket_;  // communication dtype
  Buffer shards_;
  std::vector<Entry> entries_;
  std::int64_t fill_ = 0;
  bool is_first_ = true;
};

}  // namespace dstune
