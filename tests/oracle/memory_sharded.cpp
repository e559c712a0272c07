#include "tests/oracle/memory_sharded.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/train/zero/gather/make_parameter_coordinator.hpp"
#include "core/train/zero/layout/leaf_modules.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "core/train/zero/layout/shard_groups.hpp"
#include "tests/oracle/gradient_arrival.hpp"
#include "tests/oracle/hook_trace.hpp"
#include "tests/oracle/sharded_walks.hpp"

namespace dstune::oracle {
namespace {

using sharded::BucketWalk;
using sharded::GatherWalk;
using sharded::Tensors;
using sharded::times;
using sharded::Walked;

/// Over which gradients are quantised. Other numbers of ranks are refused.
NodeGrid gradient_nodes(const StepConfig& config, int ranks) {
  const int devices = config.devices_per_node;
  if (!config.quantized_gradients || devices == 0 || ranks % devices != 0) return {};
  return node_grid(ranks, devices);
}

/// Two steps: the one that records, and the one like all that follow.
class StepWalk {
 public:
  StepWalk(Walked& walked, Bytes attention_scratch)
      : walked_(walked),
        scratch_(attention_scratch),
        trace_(make_hook_trace(num_layers_of(walked.parameters))),
        coordinator_(make_parameter_coordinator(walked.config, walked.parameters)),
        gathers_(walked),
        bucket_(walked),
        leaf_of_(walked.parameters.modules.size()) {
    for (const Arrival& arrival : backward_arrivals(walked.parameters)) {
      arrivals_[arrival.tensor] = arrival;
    }
    for (const std::size_t leaf : find_leaf_modules(walked.config, walked.parameters)) {
      for (std::size_t inner = leaf; inner < walked.parameters.end_of(leaf); ++inner) {
        leaf_of_[inner] = leaf;
      }
    }
  }

  void step() {
    for (std::int64_t micro = 0; micro < walked_.config.accumulation_steps; ++micro) {
      bucket_.begin_micro_step(micro == 0);
      coordinator_.begin_forward();
      for (const HookEvent& event : trace_.forward) follow(event);
      for (const HookEvent& event : trace_.backward) follow(event);
      bucket_.flush();
      gathers_.release(coordinator_.release_leftovers());
    }
    gathers_.release(coordinator_.release_all());
    update();
    const Tensors persistent = coordinator_.persistent_tensors();
    gathers_.gather_persistent(persistent);
    gathers_.forget_secondary();
    coordinator_.regathered(persistent);
  }

 private:
  void follow(const HookEvent& event) {
    if (event.kind == HookEvent::Kind::attention) {
      walked_.temporaries.with(scratch_);
    } else if (event.kind == HookEvent::Kind::gradient) {
      arrive(arrivals_.at(event.index));
    } else if (!leaf_of_[event.index] || *leaf_of_[event.index] == event.index) {
      event.kind == HookEvent::Kind::fetch ? enter(event.index) : leave(event.index);
    }
  }

  void enter(std::size_t module) {
    const auto plan = coordinator_.fetch(module);
    gathers_.gather(plan.gather);
    gathers_.await(plan.await);
    gathers_.gather(coordinator_.prefetch());
    if (leaf_of_[module]) open_leaf_ = module;
  }

  void leave(std::size_t module) {
    if (open_leaf_ == module) reduce_leaf();
    gathers_.release(coordinator_.release(module));
  }

  void arrive(const Arrival& arrival) {
    // DeepSpeed's linear layer: the parts are summed up in one of them.
    walked_.gradients.with(times(arrival.parts, walked_.e()));
    walked_.gradients.add(times(arrival.numel, walked_.e()));
    walked_.gradients.with(times(arrival.others, walked_.e()));
    if (open_leaf_) {
      leaf_tensors_.push_back(arrival.tensor);
    } else {
      bucket_.add(arrival.tensor);
    }
  }

  void reduce_leaf() {
    for (const SubGroup& group : walked_.layout.sub_groups()) {
      for (const std::size_t tensor : group.tensors) {
        if (std::count(leaf_tensors_.begin(), leaf_tensors_.end(), tensor) > 0) {
          bucket_.add(tensor);
        }
      }
    }
    leaf_tensors_.clear();
    open_leaf_.reset();
  }

  void update() {
    const StepConfig& config = walked_.config;
    if (config.dtype == DType::fp16) walked_.temporaries.with(times(walked_.layout.numel(), 1));
    std::int64_t largest = 0;
    for (std::size_t tensor = 0; tensor < walked_.layout.tensor_count(); ++tensor) {
      largest = std::max(largest, walked_.layout.shard(tensor));
    }
    walked_.temporaries.with(times(largest, 8));
    const DType sums = config.accumulation_dtype();
    for (const SubGroup& group : walked_.layout.sub_groups()) {
      walked_.temporaries.with(times(group.numel, sums == DType::fp32 ? 4 : size_of(sums) + 4));
      const int scratch = scratch_tensors(config.optimizer, group.weight_decay);
      walked_.temporaries.with(times(group.numel, 4 + 4 * static_cast<Bytes>(scratch)));
    }
  }

  Walked& walked_;
  Bytes scratch_;
  HookTrace trace_;
  ParameterCoordinator coordinator_;
  GatherWalk gathers_;
  BucketWalk bucket_;
  std::vector<std::optional<std::size_t>> leaf_of_;
  std::optional<std::size_t> open_leaf_;
  Tensors leaf_tensors_;
  std::map<std::size_t, Arrival> arrivals_;
};

}  // namespace

ModelStateMemory predict_sharded(const StepConfig& config, const ModelParameters& parameters,
                                 int ranks, int rank, Bytes attention_scratch) {
  const ShardSizes sizes = shard_sizes(config, ranks);
  Walked walked{config,
                parameters,
                {make_parameter_groups(config.optimizer, parameters), parameters, sizes.shards,
                 config.sub_group_size},
                sizes.shards,
                rank % sizes.shards,
                sizes.secondary,
                gradient_nodes(config, ranks),
                {},
                {},
                {}};
  StepWalk walk(walked, attention_scratch);
  walk.step();
  walk.step();

  const std::int64_t shards = walked.layout.numel();
  const Bytes own = times(shards, walked.e());
  const Bytes sums = times(shards, size_of(config.accumulation_dtype()));
  MemoryUse use;
  use.at(MemoryCategory::parameters) = own + walked.full.now();
  use.at(MemoryCategory::gradients) = sums;
  use.at(MemoryCategory::optimizer) =
      times(shards, 4 + 4 * static_cast<Bytes>(state_tensors(config.optimizer)));
  if (config.contiguous_gradients) {
    use.at(MemoryCategory::buckets) =
        times(config.reduce_bucket_size, size_of(config.message_dtype()));
  }
  ModelStateMemory memory{use, use};
  memory.peak.at(MemoryCategory::parameters) = own + walked.full.peak();
  memory.peak.at(MemoryCategory::gradients) = sums + walked.gradients.peak();
  memory.peak.at(MemoryCategory::temporaries) = walked.temporaries.peak();
  return memory;
}

}  // namespace dstune::oracle
