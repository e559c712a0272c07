#include "core/train/zero/bf16_engine.hpp"
#include "core/train/zero/offload/offloaded_engine.hpp"
#include "core/train/zero/offload/offloaded_sharded_engine.hpp"
#include "core/train/zero/partitioned_engine.hpp"
#include "core/train/zero/replicated_engine.hpp"
#include "core/train/zero/sharded_engine.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune {

std::unique_ptr<ZeroEngine> make_zero_engine(const StepConfig& config,
                                             const ModelParameters& parameters, Device& device,
                                             Collectives& collectives, std::uint64_t seed) {
  const EngineContext context{config, &parameters, &device, &collectives, seed};
  if (config.stage == 3 && config.offloads_optimizer()) {
    return std::make_unique<OffloadedShardedEngine>(context);
  }
  if (config.stage == 3) return std::make_unique<ShardedEngine>(context);
  if (config.offloads_optimizer()) return std::make_unique<OffloadedEngine>(context);
  if (config.uses_bf16_optimizer()) return std::make_unique<Bf16Engine>(context);
  if (config.stage > 0) return std::make_unique<PartitionedEngine>(context);
  if (config.dtype == DType::fp32) return std::make_unique<PlainEngine>(context);
  if (uses_fused_wrapper(config.optimizer)) return std::make_unique<FusedEngine>(context);
  return std::make_unique<UnfusedEngine>(context);
}

}  // namespace dstune
