// Stage 3: gradients on their way from autograd to this rank's shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/in_flight_limit.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/reduction/gradient_shards.hpp"
#include "core/train/zero/reduction/quantized_gradients.hpp"

namespace dstune {

/// DeepSpeed's bucket of stage 3 and what it does when the bucket is full (docs/deepspeed-step.md,
/// "Reductions of stage 3").
///
/// With contiguous_gradients a gradient is copied into a buffer of reduce_bucket_size elements of
/// the communication dtype and freed; one that does not fit even into the empty buffer waits
/// without being copied. Without contiguous_gradients all of them wait so. A flush is one
/// reduce-scatter of a rank-major copy with padded shards (of the tensor itself if it is alone and
/// N divides it). With reduce_scatter = false and everything in the buffer it is an all-reduce of
/// the buffer.
///
/// After quantize_with() a reduce-scatter becomes one average per tensor, in their order, which is
/// quantised or the same reduce-scatter of one tensor (docs/decisions/quantisation.md).
class ShardedGradients {
 public:
  /// @param stream  the stream of the reductions
  ShardedGradients(const StepConfig& config, Device& device, Collectives& collectives,
                   const ShardLayout& layout, Stream stream);

  /// Says who takes this rank's parts of the averages, before the first of them.
  /// @param shards  must outlive this object
  void bring_to(GradientShards& shards) { shards_ = &shards; }
  /// @param first  of the micro-steps of a step
  void begin_micro_step(bool first, bool last) { shards_->begin_micro_step(first, last); }
  /// @param quantized  null: no gradient is quantised; must outlive this object
  void quantize_with(const QuantizedGradients* quantized) { quantized_ = quantized; }
  /// Takes the gradient of `tensor`, in the model dtype.
  /// @throws QuantizationRefused  from the flush that it causes; so does flush()
  void add(std::size_t tensor, Buffer gradient);
  void flush();
  /// The end of the last flush.
  const Event& reduced() const { return reduced_; }

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
  using Entries = std::span<const Entry>;
  void scatter();
  void cast_to_message();
  /// Appends this rank's parts of the averages of `entries` to `parts`; `held` owns their memory.
  void average(Entries entries, std::vector<Tensor>& parts, std::vector<Buffer>& held) const;
  void average_each(std::vector<Tensor>& parts, std::vector<Buffer>& held) const;
  /// Writes into every owner's chunk of `flat` the owner's shard of each tensor, with zeroed
  /// padding.
  void interleave(Entries entries, Tensor flat) const;
  void fill_chunk(Entries entries, std::int64_t owner, Tensor chunk) const;
  /// The borders between owners whose shards of all `entries` are equally filled: the first is 0,
  /// the last the number of ranks.
  std::vector<std::int64_t> alike_owners(Entries entries) const;
  void average_whole();
  void take_parts(std::vector<Tensor> parts);
  void take_slices(Tensor whole);
  void take(std::size_t tensor, Tensor averaged);

  const StepConfig& config_;
  Device& device_;
  Collectives& collectives_;
  const ShardLayout& layout_;
  Stream stream_;
  GradientShards* shards_ = nullptr;
  const QuantizedGradients* quantized_ = nullptr;
  Buffer bucket_;  // communication dtype
  std::vector<Entry> entries_;
  std::int64_t fill_ = 0;
  InFlightLimit in_flight_limit_;
  Event reduced_;
};

}  // namespace dstune
