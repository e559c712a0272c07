// Stage 3: the groups of ranks among which parameters are sharded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

/// The sizes of the groups of ranks.
struct ShardSizes {
  int shards = 1;     ///< ranks that share one copy of the model: mics_shard_size, or all
  int replicas = 1;   ///< ranks that have the same shard: ranks / shards
  int secondary = 1;  ///< ranks that share hpZ's secondary shards; 1: there are none
};

ShardSizes shard_sizes(const StepConfig& config, int ranks);

/// The settings of `config` that DeepSpeed refuses with this many ranks, as StepConfig::unsupported
/// names them.
std::vector<std::string> unsupported_shard_sizes(const StepConfig& config, int ranks);

/// Neighbouring ranks share a copy of the model (MiCS), and neighbours among these share the
/// secondary shards (hpZ). Ranks at the same place of their copies are replicas of each other.
class ShardGroups {
 public:
  /// Local. `all` must outlive this object.
  ShardGroups(const StepConfig& config, Collectives& all);

  Collectives& shards() const noexcept { return shards_ ? *shards_ : *all_; }
  Collectives* replicas() const noexcept { return replicas_.get(); }    ///< null: there are none
  Collectives* secondary() const noexcept { return secondary_.get(); }  ///< null: there are none

 private:
  Collectives* all_;
  std::unique_ptr<Collectives> shards_;
  std::unique_ptr<Collectives> replicas_;
  std::unique_ptr<Collectives> secondary_;
};

}  // namespace dstune
