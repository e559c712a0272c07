#include "core/experiment/step_config.hpp"

#include <string_view>
#include <variant>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

using fields::find;
using fields::is_on;
using fields::read;
using fields::read_text;
using fields::reject;
using fields::section;

void find_unsupported_precision(const json::object& root, StepConfig& config) {
  const auto master = [&](const json::object& part, std::string_view name, std::string_view key) {
    if (is_on(part, key)) config.unsupported.push_back(concat(name, ".", key));
  };
  const json::object& bf16 = section(root, root.contains("bf16") ? "bf16" : "bfloat16");
  master(section(root, "fp16"), "fp16", "fp16_master_weights_and_grads");
  master(bf16, "bf16", "bf16_master_weights_and_grads");
  master(bf16, "bf16", "bf16_optimizer_states");
}

// The section is read by deepspeed.checkpointing.checkpoint alone, which a model must call. Without
// model parallelism there are no ranks to partition activations over.
void find_unsupported_checkpointing(const json::object& root, StepConfig& config) {
  if (!config.checkpointing.by_deepspeed) return;
  for (const auto* key : {"cpu_checkpointing", "contiguous_memory_optimization"}) {
    if (is_on(section(root, "activation_checkpointing"), key)) {
      config.unsupported.push_back(concat("activation_checkpointing.", key));
    }
  }
}

// The keys of ZeRO++ do nothing below stage 3; zero_quantized_nontrainable_weights does nothing
// where all of the model's parameters are trained, and zeropp_loco_param nothing without quantised
// gradients (docs/decisions/quantisation.md).
void find_unsupported_quantization(const json::object& zero, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.push_back(concat("zero_optimization.", key));
  };
  add(config.quantized_weights && config.allgather_sequential,
      "zero_quantized_weights with stage3_allgather_sequential");
  const bool shards_in_parts = config.mics_shard_size > 0;
  add(config.quantized_weights && shards_in_parts, "zero_quantized_weights with mics_shard_size");
  add(config.quantized_gradients && shards_in_parts,
      "zero_quantized_gradients with mics_shard_size");
  add(config.quantized_gradients && find(zero, "zeropp_loco_param") != nullptr,
      "zeropp_loco_param");
}

// DeepSpeed offloads the optimizers that it has for a CPU, which are Adam, Adagrad and Lion.
bool has_cpu_optimizer(const OptimizerConfig& optimizer) {
  const auto* const adam = std::get_if<AdamSettings>(&optimizer.settings);
  if (adam != nullptr) return optimizer.client || !adam->torch;
  return is<AdagradSettings>(optimizer) || is<LionSettings>(optimizer);
}

double ratio_of(const json::object& offload) {
  double ratio = 1;
  read(offload, "ratio", ratio);
  return ratio;
}

// DeepSpeed passes on what the optimizer is given, of which its ops for the CPU take less than
// those for GPUs: any other argument is an error.
void find_unsupported_arguments(const json::object& root, StepConfig& config) {
  constexpr std::string_view kOfAdam =
      " lr betas eps weight_decay bias_correction amsgrad adam_w_mode fp32_optimizer_states "
      "torch_adam max_grad_norm ";
  constexpr std::string_view kOfAdagrad =
      " lr eps weight_decay amsgrad fp32_optimizer_states max_grad_norm ";
  constexpr std::string_view kOfLion =
      " lr betas weight_decay fp32_optimizer_states max_grad_norm ";
  const bool is_adagrad = is<AdagradSettings>(config.optimizer);
  const std::string_view taken =
      is_adagrad ? kOfAdagrad : (is<LionSettings>(config.optimizer) ? kOfLion : kOfAdam);
  for (const auto& member : section(section(root, "optimizer"), "params")) {
    if (taken.find(concat(' ', std::string_view(member.key()), ' ')) != taken.npos) continue;
    config.unsupported.push_back(concat("optimizer.params.", std::string_view(member.key()),
                                        " with zero_optimization.offload_optimizer"));
  }
  bool takes_cpu_adam = true;
  read(root, "zero_force_ds_cpu_optimizer", takes_cpu_adam);
  if (config.optimizer.client && !takes_cpu_adam) {
    config.unsupported.emplace_back("zero_force_ds_cpu_optimizer: false");
  }
}

// Sums of another type than the model's, where the optimizer is offloaded. The engine asks for
// "cpu" before it takes stage 1 for itself: with "nvme" it runs its BF16 optimizer on the device,
// with an optimizer for the host.
void find_unsupported_sums(const json::object& offload, StepConfig& config) {
  const bool has_other_type = config.accumulation_dtype() != config.dtype;
  const auto add = [&](bool asked_for, std::string_view what) {
    if (!has_other_type || !asked_for) return;
    config.unsupported.push_back(
        concat("zero_optimization.offload_optimizer with data_types.grad_accum_dtype", what));
  };
  const bool is_fp32 = config.accumulation_dtype() == DType::fp32;
  add(config.stage == 3, " in stage 3");
  add(config.stage < 3 && !is_fp32, " other than fp32");
  add(config.stage == 1 && config.dtype == DType::bf16 && is_fp32 &&
          read_text(offload, "device", "none") == "nvme",
      " in bf16 and stage 1 and device nvme (a DeepSpeed bug)");
}

// The engine cuts files at multiples of 4 KiB, as every drive takes them. Of a larger request Linux
// moves no more than the pages below 2 GiB (MAX_RW_COUNT), which is a short read or write.
void find_unsupported_aio(const json::object& aio, StepConfig& config) {
  constexpr Bytes kLargestLogicalBlock = 4096;
  constexpr Bytes kMostOfLinux = (Bytes{1} << 31U) - kLargestLogicalBlock;
  if (config.aio.block_size % kLargestLogicalBlock != 0) {
    config.unsupported.emplace_back("aio.block_size that is not a multiple of 4096");
  }
  if (config.aio.block_size > kMostOfLinux) {
    config.unsupported.emplace_back("aio.block_size above 2 GiB - 4096");
  }
  if (is_on(aio, "use_gds")) config.unsupported.emplace_back("aio.use_gds");
}

// What of an offloaded optimizer is another step than the one that is modelled, or an error of
// DeepSpeed's. Below stage 3 "nvme" is the same as "cpu".
void find_unsupported_offload(const json::object& offload, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view what) {
    if (asked_for)
      config.unsupported.push_back(concat("zero_optimization.offload_optimizer", what));
  };
  const bool is_stage_3 = config.stage == 3;
  add(is_stage_3 && config.offload_ratio < 1 && !is<AdamSettings>(config.optimizer),
      ".ratio below 1 with an optimizer other than Adam (a DeepSpeed bug)");
  add(config.swaps_optimizer() && config.offload_ratio < 1, ".ratio below 1 with device nvme");
  add(is_on(offload, "super_offload"), ".super_offload");
  add(!has_cpu_optimizer(config.optimizer), " with an optimizer that has no CPU kernel");
  add(is_stage_3 && config.quantized_gradients, " with zero_quantized_gradients");
  add(is_stage_3 && config.mics_shard_size > 0, " with mics_shard_size");
  add(is_stage_3 && config.hpz_partition_size > 1, " with zero_hpz_partition_size");
  add(config.behaviour.has_other_offload, " before DeepSpeed 0.19.8");
  find_unsupported_sums(offload, config);
}

// The same of parameters that live on the host.
void find_unsupported_parameter_offload(const json::object& zero, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view what) {
    if (asked_for) config.unsupported.push_back(concat("zero_optimization.offload_param", what));
  };
  add(config.swaps_parameters() && config.offloads_optimizer() &&
          ratio_of(section(zero, "offload_optimizer")) < 1,
      ".device nvme with offload_optimizer.ratio below 1");
  add(config.quantized_weights, " with zero_quantized_weights");
  add(config.mics_shard_size > 0, " with mics_shard_size");
  add(config.hpz_partition_size > 1, " with zero_hpz_partition_size");
  add(config.behaviour.has_other_offload, " before DeepSpeed 0.19.8");
}

// In stage 0 DeepSpeed reads none of these keys but those that offload the optimizer, and these end
// it with an error: its CPU optimizer takes no parameters on a device. Below stage 3 it reads none
// of the keys that offload parameters.
void find_unsupported_zero(const json::object& zero, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.push_back(concat("zero_optimization.", key));
  };
  add(config.stage < 3 && ratio_of(section(zero, "offload_optimizer")) < 1,
      "offload_optimizer.ratio below stage 3 (a DeepSpeed bug)");
  add(is_on(zero, "cpu_offload"), "cpu_offload");
  add(config.stage == 0 && config.offloads_optimizer(), "offload_optimizer");
  if (config.stage == 0) return;
  if (config.offloads_optimizer())
    find_unsupported_offload(section(zero, "offload_optimizer"), config);
  add(config.stage == 3 && is_on(zero, "cpu_offload_param"), "cpu_offload_param");
  if (config.offloads_parameters()) find_unsupported_parameter_offload(zero, config);
  add(find(zero, "zenflow") != nullptr, "zenflow");
  bool has_norm = true;
  read(zero, "compute_grad_norm", has_norm);
  add(!has_norm, "compute_grad_norm: false");
  add(config.stage < 3 && is_on(zero, "parameter_alignment"), "parameter_alignment");
  if (config.stage < 3) return;
  const bool shards_in_parts = config.mics_shard_size > 0;
  add(shards_in_parts && config.hpz_partition_size > 1,
      "mics_shard_size with zero_hpz_partition_size");
  add(shards_in_parts && is_on(zero, "mics_hierarchical_params_gather"),
      "mics_hierarchical_params_gather");
  add(is_on(zero, "enable_sanity_checks"), "enable_sanity_checks");
  find_unsupported_quantization(zero, config);
}

// DeepSpeed refuses stage 0 with another accumulation type, and stages 2 and 3 with reduce_scatter
// together with either way of dividing early. Stage 1 with sums of its own tensors is not modelled
// without a bucket either: DeepSpeed never gets the reduced gradients back from its sums then.
void find_unsupported_gradients(StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.emplace_back(key);
  };
  const bool is_stage_3 = config.stage == 3;
  const bool refused = config.stage >= 2 && config.reduce_scatter;
  const bool has_sums_in_lists = config.stage == 1 && !config.contiguous_gradients &&
                                 !config.uses_bf16_optimizer() && !config.sums_in_partition();
  add((config.stage == 0 || has_sums_in_lists) && config.accumulation_dtype() != config.dtype,
      "data_types.grad_accum_dtype");
  add(refused && config.prescale_gradients, "prescale_gradients");
  add((is_stage_3 || refused) && config.gradient_predivide_factor != 1,
      "gradient_predivide_factor");
  add(is_stage_3 && config.sum_gradients, "gradient_allreduce_op");
}

void find_unsupported_in_release(StepConfig& config) {
  if (config.dtype == DType::bf16 && config.stage == 0 &&
      config.behaviour.has_bf16_optimizer_in_stage_0) {
    config.unsupported.emplace_back("bf16.enabled in stage 0 before DeepSpeed 0.17.6");
  }
  if (config.uses_bf16_optimizer() && config.behaviour.misses_bf16_optimizer) {
    config.unsupported.emplace_back(
        "data_types.grad_accum_dtype in stage 1 of DeepSpeed 0.17.6 to 0.18.4");
  }
}

void find_unsupported(const json::object& root, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.emplace_back(key);
  };
  for (const auto* key :
       {"amp", "torch_autocast", "progressive_layer_drop", "hybrid_engine", "curriculum_learning",
        "data_efficiency", "eigenvalue", "expert_parallel", "elasticity"}) {
    if (is_on(section(root, key), "enabled")) add(true, concat(key, ".enabled"));
  }
  add(is_on(root, "sparse_gradients"), "sparse_gradients");
  add(is_on(section(root, "compile"), "deepcompile"), "compile.deepcompile");
  for (const auto* key : {"sparse_attention", "compression_training", "pipeline"}) {
    add(!section(root, key).empty(), key);
  }
  double tensor_ways = 1;
  read(section(root, "tensor_parallel"), "autotp_size", tensor_ways);
  add(tensor_ways > 1, "tensor_parallel.autotp_size");
  double sequence_ways = 1;
  read(root, "sequence_parallel_size", sequence_ways);
  add(sequence_ways > 1, "sequence_parallel_size");
}

}  // namespace

StepConfig make_step_config(const json::object& ds_config) {
  StepConfig config;
  config.version = deepspeed_version_of(ds_config);
  config.behaviour = behaviour_of(config.version);
  find_unsupported_precision(ds_config, config);
  read_knobs(ds_config, config);
  if (config.micro_batch < 1) reject("train_micro_batch_size_per_gpu", "integer >= 1");
  if (config.accumulation_steps < 1) reject("gradient_accumulation_steps", "integer >= 1");
  if (config.loss_scale.window == 0) reject("fp16.loss_scale_window", "integer >= 1");
  if (config.stage > 3) reject("zero_optimization.stage", "stage (0, 1, 2, 3)");
  config.check_grad_overflow = config.check_grad_overflow && config.behaviour.can_check_bf16;
  const json::object& zero = section(ds_config, "zero_optimization");
  // DeepSpeed's engine of stages 1 and 2 does not do without the bucket then.
  if (config.offloads_optimizer() && config.stage < 3) config.contiguous_gradients = true;
  find_unsupported_checkpointing(ds_config, config);
  find_unsupported_zero(zero, config);
  if (config.offloads_optimizer() && config.stage > 0)
    find_unsupported_arguments(ds_config, config);
  if (config.uses_drives()) find_unsupported_aio(section(ds_config, "aio"), config);
  find_unsupported_gradients(config);
  find_unsupported_in_release(config);
  find_unsupported(ds_config, config);
  return config;
}

StepConfig make_step_config(const Experiment& experiment) {
  StepConfig config = experiment.ds_config.step();
  config.devices_per_node = experiment.settings.devices_per_node;
  if (config.stage < 3 || experiment.settings.model.fine_tuning.is_everything()) return config;
  bool quantizes_frozen = false;
  read(section(experiment.ds_config.json(), "zero_optimization"),
       "zero_quantized_nontrainable_weights", quantizes_frozen);
  if (quantizes_frozen) {
    config.unsupported.emplace_back("zero_optimization.zero_quantized_nontrainable_weights");
  }
  return config;
}

}  // namespace dstune
