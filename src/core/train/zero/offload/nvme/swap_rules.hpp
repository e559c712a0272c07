// What of an optimizer is swapped to a drive, and how many buffers that takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

/// DeepSpeed's runtime/swap_tensor/optimizer_utils.py and partitioned_param_swapper.py. Numbers are
/// of elements.
class SwapRules {
 public:
  /// @param element  its size
  explicit SwapRules(const AioSettings& aio, Bytes element = sizeof(float));

  /// Whether a tensor of so many elements is swapped: smaller ones stay where they are.
  bool is_swapped(std::int64_t numel) const { return numel >= least_; }
  /// Files have a multiple of 1 KiB for each thread.
  std::int64_t padded(std::int64_t numel) const { return (numel + unit_ - 1) / unit_ * unit_; }
  /// The first elements of a gradient which are written to a file; 0: none. The others stay on the
  /// device.
  std::int64_t written(std::int64_t numel) const {
    const std::int64_t whole = numel / unit_ * unit_;
    return is_swapped(numel) && is_swapped(whole) ? whole : 0;
  }

 private:
  std::int64_t least_;
  std::int64_t unit_;
};

/// The elements of the largest sub-group, padded: the size of each buffer.
std::int64_t swap_buffer_numel(const ShardLayout& layout, const SwapRules& rules);

/// How many buffers DeepSpeed needs, or its run dies in the first or second step: a sub-group has
/// its master, its states and its gradients; with pipelines one that is read ahead, and one that is
/// still written, have the same.
/// Where none is swapped it looks at one all the same.
/// @param swapped  sub-groups that are swapped
int swap_buffers_needed(const StepConfig& config, std::size_t swapped);

/// Buffers for parameters that are too small for fast_init, of which DeepSpeed would die: why it
/// does, or none.
std::optional<std::string> unsupported_fast_init(const StepConfig& config,
                                                 const ShardLayout& layout);

/// Too few buffers, of which DeepSpeed would die: a text as in StepConfig::unsupported, or none.
/// @param ranks  that share the model
std::optional<std::string> unsupported_swap_buffers(const StepConfig& config,
                                                    const ModelParameters& parameters, int ranks);

}  // namespace dstune
