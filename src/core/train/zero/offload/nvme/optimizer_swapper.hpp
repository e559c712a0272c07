// Stage 3: master weights, optimizer state and gradients on a drive, by sub-group.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/drive/drive.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/placed_tensor.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/nvme/gradient_swapper.hpp"
#include "core/train/zero/offload/nvme/swap_buffers.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"
#include "core/train/zero/offload/nvme/swapped_sub_group.hpp"

namespace dstune {

/// DeepSpeed's PartitionedOptimizerSwapper and, with a pipeline, its PipelinedOptimizerSwapper
/// (docs/offload.md, "The optimizer on a drive"). Sub-groups that are large enough lie in files.
/// One after the other is read into buffers, stepped there by the host, and written again. Without
/// pipelines the host waits for each; with pipeline_read the next one is read meanwhile, and with
/// pipeline_write the one before is still written.
class OptimizerSwapper {
 public:
  using Groups = std::vector<std::size_t>;  ///< of the layout's sub-groups
  using TakeMaster = std::function<void(PlacedTensor master)>;

  /// Allocates buffers, and reserves all files.
  /// @param layout  must outlive this
  /// @param rank    of the ranks that share the model
  OptimizerSwapper(Device& device, const StepConfig& config, const ShardLayout& layout, int rank);

  /// Whether a sub-group is swapped. The functions below take those that are.
  bool has(std::size_t group) const { return groups_[group].has_value(); }

  /// Writes the first master weights of `groups`.
  /// @param parameters  gives the shards of a sub-group
  void begin_masters(const Groups& groups,
                     const std::function<PlacedTensor(std::size_t group)>& parameters);
  /// The same with shards that come in their turn, some sub-groups at a time (fast_init).
  /// @param bring  gives those of the first of `left`, of one sub-group or more
  void begin_masters_in_turns(
      Groups groups, const std::function<std::vector<PlacedTensor>(const Groups& left)>& bring);
  /// What DeepSpeed does with each where it makes gradients for the others: it reads and writes it.
  /// To be called for all in their order.
  /// @param take_master  gets it meanwhile
  void begin_state(std::size_t group, const TakeMaster& take_master);

  /// Takes gradients of the last micro-step; the host waits for the copies of those that are
  /// written.
  void take(std::size_t group, const std::vector<GradientPiece>& gradients);

  /// One update of a sub-group, whose new values `take_master` gets. To be called for all in their
  /// order.
  void update(std::size_t group, const NextUpdate& next, double factor,
              const TakeMaster& take_master);

  /// Lets `use` read and write the master of a sub-group, in the host's memory of Tier::locked. No
  /// part of a step, nor between two of its updates.
  void with_master(std::size_t group, const std::function<void(Tensor master)>& use);

 private:
  using Numbers = std::vector<SwapBuffers::Number>;
  /// A sub-group in buffers.
  struct Loaded {
    std::size_t group = 0;
    Numbers buffers;
    Tensor gradients;  // empty: it has none
  };

  void reserve(std::size_t group, int rank);
  DriveHandle& reads() { return reads_ ? *reads_ : writes_; }
  bool is_pipelined() const { return reads_.has_value(); }
  SwappedSubGroup& of(std::size_t group) { return *groups_[group]; }
  /// The elements of a group in a buffer; and these with the padding of its file.
  Tensor elements(const Loaded& loaded, std::size_t place) const;
  Tensor padded(std::int64_t numel, SwapBuffers::Number buffer) const {
    return buffers_.tensor(buffer, rules_.padded(numel));
  }
  std::optional<std::size_t> after(std::size_t group) const;

  Loaded swap_in(std::size_t group);
  Loaded take_buffers(std::size_t group);
  void read_tensors(const Loaded& loaded);
  /// @returns whether any of them is in a file
  bool read_gradients(const Loaded& loaded);
  void bring_kept(const Loaded& loaded);
  Loaded start_to_read(std::size_t group);

  void step(const Loaded& loaded, const NextUpdate& next);
  void swap_out(Loaded loaded);
  void write_and_wait(Loaded& loaded);
  void write_behind(Loaded loaded);
  void write_tensors(const Loaded& loaded);
  void write_first_state(Loaded& loaded);
  /// A tensor that lies in a buffer, and its file.
  struct BufferedTensor {
    std::int64_t numel = 0;
    DriveExtent file;
  };
  /// Writes `count` tensors by way of `buffers`: as many as there are buffers are filled, by
  /// fill(i, buffer), then written, and awaited together.
  void write_through(const Numbers& buffers, std::size_t count,
                     const std::function<BufferedTensor(std::size_t, SwapBuffers::Number)>& fill);
  void add_first_state(Loaded& loaded);
  std::size_t write_some(const Numbers& buffers, std::span<const std::size_t> groups,
                         std::span<const PlacedTensor> parameters);
  void end_writing();

  Device& device_;
  const ShardLayout& layout_;
  bool reads_ahead_;
  bool writes_behind_;
  std::size_t states_;  // tensors of a sub-group
  SwapRules rules_;
  std::vector<std::optional<SwappedSubGroup>> groups_;
  Drive drive_;
  SwapBuffers buffers_;
  // Their destructors wait for what is under way in the buffers.
  DriveHandle writes_;
  std::optional<DriveHandle> reads_;  // with a pipeline; without one there is a single handle
  GradientSwapper gradients_;
  std::optional<Loaded> read_ahead_;
  std::optional<Loaded> written_behind_;
};

}  // namespace dstune
