// The typed view of one DeepSpeed JSON: everything that changes a training step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/device/drive/aio_settings.hpp"
#include "core/device/dtype.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/experiment/deepspeed_version.hpp"
#include "core/experiment/optimizer_config.hpp"

namespace dstune {

struct Experiment;

struct LossScaleConfig {
  double static_scale = 0;  ///< 0: dynamic
  int initial_scale_power = 16;
  int window = 1000;
  int hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_scale = 1;
};

/// The classes that DeepSpeed takes for leaf modules unless the configuration names others:
/// DEFAULT_LEAF_MODULE_CLASSES of its runtime/zero/leaf_module_config.py.
constexpr std::string_view kDefaultLeafClasses[] = {
    "transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock",
    "transformers.models.qwen2_moe.modeling_qwen2_moe.Qwen2MoeSparseMoeBlock",
    "transformers.models.qwen3_moe.modeling_qwen3_moe.Qwen3MoeSparseMoeBlock",
};

/// Modules that stage 3 gathers as one unit, by class, by name and by the end of a name.
struct LeafModuleConfig {
  std::vector<std::string> classes;
  std::vector<std::string> names;
  std::vector<std::string> name_suffixes;
  /// kDefaultLeafClasses count too: `classes` is not given, and the release of DeepSpeed has them.
  bool default_classes = true;

  bool operator==(const LeafModuleConfig&) const = default;
};

/// Where what a device does not keep lives: in its host's memory, or in files on a drive.
enum class OffloadDevice { none, cpu, nvme };

/// Each member that a key of the JSON decides has its row in the table of knobs (knobs.hpp), and
/// the default here unless releases differ.
struct StepConfig {
  int stage = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  DType dtype = DType::fp32;        ///< the type of model parameters and gradients
  LossScaleConfig loss_scale;       ///< used if dtype is fp16
  bool check_grad_overflow = true;  ///< looks for inf and NaN in bf16 gradients, in stages 1 and 2
  bool timer_synchronizes = true;   ///< timers.throughput is enabled and synchronized
  std::optional<DType> communication_dtype;
  std::optional<DType> grad_accum_dtype;
  bool immediate_grad_update = false;  ///< the BF16 optimizer accumulates in the gradient's hook
  /// Gradients are divided before the sum over the ranks, not after it.
  bool prescale_gradients = false;
  /// F: on N ranks gradients are divided by f before the sum and by N / f after it.
  double gradient_predivide_factor = 1;
  bool sum_gradients = false;  ///< gradient_allreduce_op "sum": no division at all
  double gradient_clipping = 1.0;
  OptimizerConfig optimizer;
  ActivationCheckpointing checkpointing = {};  ///< "dstune.activation_checkpointing"
  /// deepspeed.checkpointing.checkpoint waits for the device where it begins and ends.
  bool checkpoints_synchronize = false;

  /// The samples of one optimizer step on `ranks` data-parallel ranks.
  std::int64_t train_batch(int ranks) const { return micro_batch * accumulation_steps * ranks; }
  /// The type in which gradients are summed over the ranks.
  DType message_dtype() const { return communication_dtype.value_or(dtype); }
  /// The type in which the gradients of micro-steps are added up.
  DType accumulation_dtype() const { return grad_accum_dtype.value_or(dtype); }
  /// Whether DeepSpeed runs its BF16 optimizer instead of ZeRO-1 (docs/deepspeed-step.md, "Which
  /// optimizer class runs").
  bool uses_bf16_optimizer() const {
    return stage == 1 && dtype == DType::bf16 && accumulation_dtype() == DType::fp32 &&
           !offloads_optimizer();
  }
  /// Whether stages 1 and 2 add averaged gradients in fp32 to a buffer of the rank's partition,
  /// which the update then uses.
  bool sums_in_partition() const {
    return (stage == 1 || stage == 2) && behaviour.has_partition_sums && dtype != DType::fp32 &&
           accumulation_dtype() == DType::fp32 && !uses_bf16_optimizer();
  }

  std::int64_t reduce_bucket_size = 500'000'000;  ///< elements
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  bool overlap_comm = false;  ///< default: true in stage 3
  bool round_robin_gradients = false;
  bool use_multi_rank_bucket_allreduce = true;
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  std::int64_t module_granularity_threshold = 0;
  LeafModuleConfig leaf_module;
  bool allgather_sequential = false;
  bool use_all_reduce_for_fetch_params = false;
  bool memory_efficient_linear = true;
  bool zero_init = true;  ///< "dstune.zero_init": the model is made under deepspeed.zero.Init
  /// Whether DeepSpeed's function runs in place of torch.nn.functional.linear.
  bool replaces_linear() const {
    return stage == 3 && memory_efficient_linear &&
           (zero_init || behaviour.replaces_linear_of_any_model);
  }
  bool quantized_weights = false;    ///< stage 3
  bool quantized_gradients = false;  ///< stage 3
  int hpz_partition_size = 1;  ///< ranks that share secondary shards; 1: there are no such shards
  int mics_shard_size = 0;     ///< ranks that divide the model among them; 0: all ranks do

  /// The optimizer's state is in the host's memory or, in stage 3 alone, on a drive, and its update
  /// runs on the host. In stages 1 and 2 "nvme" is "cpu".
  OffloadDevice optimizer_device = OffloadDevice::none;
  bool offloads_optimizer() const { return optimizer_device != OffloadDevice::none; }
  bool swaps_optimizer() const { return optimizer_device == OffloadDevice::nvme; }
  bool pin_offloaded_optimizer = true;  ///< what can be pinned of it is
  double offload_ratio = 1;             ///< stage 3: the part of the sub-groups that are offloaded
  /// Of so many sub-groups the first ones that stay on the device although the optimizer is
  /// offloaded. It is rounded down, and as DeepSpeed does it, in double.
  std::size_t sub_groups_on_device(std::size_t sub_groups) const {
    return static_cast<std::size_t>((1 - offload_ratio) * static_cast<double>(sub_groups));
  }
  /// Stage 3: where the shards of parameters are. Other stages ignore it.
  OffloadDevice parameter_device = OffloadDevice::none;
  bool offloads_parameters() const { return parameter_device != OffloadDevice::none; }
  bool swaps_parameters() const { return parameter_device == OffloadDevice::nvme; }
  /// The shards are pinned already as they are made; those of trained parameters are in any case
  /// where they stay.
  bool pin_offloaded_parameters = true;
  bool offloads() const { return offloads_optimizer() || offloads_parameters(); }
  bool uses_drives() const { return swaps_optimizer() || swaps_parameters(); }
  // How the optimizer is swapped.
  std::string optimizer_nvme_path;  ///< a directory
  int optimizer_buffer_count = 4;   ///< of the largest sub-group's elements in fp32
  bool pipeline_read = false;       ///< the next sub-group is read during an update
  bool pipeline_write = false;      ///< one sub-group is written during the next update
  bool fast_init = false;  ///< the first masters of parameters on a drive come straight from there
  // How parameters are swapped.
  std::string parameter_nvme_path;                   ///< a directory
  int parameter_buffer_count = 5;                    ///< each has one shard at a time
  std::int64_t parameter_buffer_size = 100'000'000;  ///< elements of a buffer
  /// The first so many elements of a rank's trained shards stay in the host's memory, by whole
  /// sub-groups.
  std::int64_t max_parameters_in_cpu = 1'000'000'000;
  AioSettings aio;  ///< of all files

  /// The release that the JSON is for. It decides `behaviour`, whatever else the JSON says.
  DeepSpeedVersion version = kNewestDeepSpeed;
  StepBehaviour behaviour;

  /// A property of the machine, not of the JSON: RunSettings::devices_per_node.
  int devices_per_node = 0;

  /// The settings of the configuration that the step does not model. An experiment that has any is
  /// Skipped, never measured without them. One text per knob, e.g.
  /// "zero_optimization.offload_optimizer".
  std::vector<std::string> unsupported;
};

/// Reads a checked DeepSpeed JSON (no "auto" left). Defaults are those of the release that it is
/// for (deepspeed_version_of).
/// @throws std::invalid_argument  if the JSON was not checked (a wrong type or value)
StepConfig make_step_config(const json::object& ds_config);
/// Reads the experiment's JSON and adds what the experiment says of the machine and of the model.
StepConfig make_step_config(const Experiment& experiment);

}  // namespace dstune
