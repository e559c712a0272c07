// Stage 3: shards of parameters on a drive, and the host's memory through which they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/drive/drive.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/gather/shards_on_drive.hpp"
#include "core/train/zero/layout/placed_tensor.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"

namespace dstune {

/// DeepSpeed's AsyncPartitionedParameterSwapper (docs/offload.md, "Parameters on a drive"). It has
/// offload_param.buffer_count buffers of buffer_size elements in one piece of locked memory. A
/// shard that is large enough has a file, and a buffer from when it is read until let_go().
class ParameterSwapper final : public ShardsOnDrive {
 public:
  using Tensors = std::vector<std::size_t>;

  /// Allocates the buffers.
  /// @param layout  must outlive this
  ParameterSwapper(Device& device, const StepConfig& config, const ShardLayout& layout);

  /// Whether a tensor's shard is large enough to be swapped.
  bool takes(std::size_t tensor) const { return rules_.is_swapped(layout_.shard(tensor)); }
  /// Reserves the file of such a tensor, and writes what `fill` gives a buffer.
  /// @throws StepRefused  if no buffer is large enough
  void begin(std::size_t tensor, const std::function<void(PlacedTensor shard)>& fill);
  /// Moves a shard into the host's memory for good; its file stays, unused.
  void move_to(std::size_t tensor, const PlacedTensor& place);
  /// Makes the buffer through which new values are written: DeepSpeed's has room for all elements
  /// of a sub-group's tensors, where a rank's shards of them would do.
  /// @param largest  the largest sub-group
  void make_write_back(const SubGroup& largest);

  /// Whether a tensor's shard has a file that is in use.
  bool has(std::size_t tensor) const { return places_[tensor].state != State::elsewhere; }
  bool is_away(std::size_t tensor) const override {
    return places_[tensor].state == State::on_drive;
  }
  bool is_in_buffer(std::size_t tensor) const { return places_[tensor].state == State::in_buffer; }
  std::size_t free_buffers() const override { return unused_ + given_back_.size(); }
  /// A shard in its buffer.
  PlacedTensor shard(std::size_t tensor) const;

  /// As those of ParameterShards.
  void bring(const Tensors& tensors);
  void read_ahead(const Tensors& tensors) { start_to_read(tensors); }
  void let_go(const Tensors& tensors);
  void with_shard(std::size_t tensor, const std::function<void(PlacedTensor)>& use);

  /// Writes new values, by way of make_write_back()'s buffer; the host waits once, for all.
  struct NewValues {
    std::size_t tensor = 0;
    PlacedTensor values;
  };
  void write_back(const std::vector<NewValues>& shards);

  /// Places of `numels` elements in buffers that are free, one after the other: as many as there is
  /// room for. They are taken by nobody.
  std::vector<Tensor> room_for(const std::vector<std::int64_t>& numels) const;
  /// Reads shards that are on the drive without their padding; the host waits once, if there are
  /// any.
  /// @throws StepRefused  if DeepSpeed's threads cannot share one equally
  void read_to(const std::vector<std::pair<std::size_t, Tensor>>& places);

 private:
  using Number = std::size_t;
  enum class State { elsewhere, on_drive, on_its_way, in_buffer };
  struct Place {
    State state = State::elsewhere;
    DriveExtent file;
    Number buffer = 0;  // of those on its way or there
  };

  /// A shard with the padding of its file.
  Tensor padded(std::size_t tensor) const;
  void take_buffer(std::size_t tensor);
  void give_back(std::size_t tensor);
  /// @param what  that buffers are
  [[noreturn]] void refuse(std::string_view what) const;
  void start_to_read(const Tensors& tensors);
  void await_reads();
  void write(std::size_t tensor);

  Device& device_;
  const ShardLayout& layout_;
  DType dtype_;
  SwapRules rules_;
  Bytes threads_;              // that share an operation
  std::int64_t buffer_numel_;  // as asked for
  Drive drive_;
  Buffer pool_;
  std::size_t count_;   // of buffers
  std::size_t unused_;  // the first so many have never been taken
  std::vector<Number> given_back_;
  Buffer write_back_;
  std::vector<Place> places_;  // by tensor
  Tensors on_their_way_;
  // Their destructors wait for what is under way in the buffers.
  DriveHandle reads_;
  DriveHandle writes_;
};

}  // namespace dstune
