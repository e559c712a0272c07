#include "core/train/zero/offload/nvme/swap_rules.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {
namespace {

constexpr Bytes kLeastSwapped = Bytes{1} << 20U;
constexpr Bytes kUnit = 1024;
constexpr int kMasterAndGradients = 2;

}  // namespace

SwapRules::SwapRules(const AioSettings& aio, Bytes element)
    : least_(static_cast<std::int64_t>((std::max(kLeastSwapped, aio.block_size) + element - 1) /
                                       element)),
      unit_(static_cast<std::int64_t>(kUnit / element) * aio.intra_op_parallelism) {}

std::int64_t swap_buffer_numel(const ShardLayout& layout, const SwapRules& rules) {
  return rules.padded(layout.largest_sub_group());
}

int swap_buffers_needed(const StepConfig& config, std::size_t swapped) {
  const int at_once =
      1 + static_cast<int>(config.pipeline_read) + static_cast<int>(config.pipeline_write);
  if (swapped == 0) return 1;
  return (kMasterAndGradients + state_tensors_on_host(config.optimizer)) *
         std::min(static_cast<int>(swapped), at_once);
}

std::optional<std::string> unsupported_fast_init(const StepConfig& config,
                                                 const ShardLayout& layout) {
  const SwapRules of_parameters(config.aio, size_of(config.dtype));
  const std::int64_t needed = swap_buffer_numel(layout, SwapRules(config.aio));
  if (of_parameters.padded(config.parameter_buffer_size) >= needed) return std::nullopt;
  return concat("zero_optimization.offload_param.buffer_size ", config.parameter_buffer_size,
                " where offload_optimizer.fast_init needs ", needed, " or DeepSpeed crashes");
}

std::optional<std::string> unsupported_swap_buffers(const StepConfig& config,
                                                    const ModelParameters& parameters, int ranks) {
  if (!config.swaps_optimizer()) return std::nullopt;
  const SwapRules rules(config.aio);
  const ShardLayout layout(make_parameter_groups(config.optimizer, parameters), parameters, ranks,
                           config.sub_group_size);
  const auto swapped =
      std::count_if(layout.sub_groups().begin(), layout.sub_groups().end(),
                    [&](const SubGroup& group) { return rules.is_swapped(group.numel); });
  const int needed = swap_buffers_needed(config, static_cast<std::size_t>(swapped));
  if (config.optimizer_buffer_count >= needed) return std::nullopt;
  return concat("zero_optimization.offload_optimizer.buffer_count ", config.optimizer_buffer_count,
                " where DeepSpeed needs ", needed, " or crashes");
}

}  // namespace dstune
