#include "core/experiment/step_config.hpp"

#include <string_view>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"

namespace dstune {
namespace {

using fields::find;
using fields::is_on;
using fields::read;
using fields::read_integer;
using fields::read_text;
using fields::reject;
using fields::section;

std::vector<std::string> read_texts(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  if (value == nullptr) return {};
  if (!value->is_array()) reject(key, "list of strings");
  std::vector<std::string> texts;
  for (const json::value& text : value->get_array()) {
    if (!text.is_string()) reject(key, "list of strings");
    texts.emplace_back(text.get_string());
  }
  return texts;
}

std::optional<DType> read_dtype(const json::object& object, std::string_view key) {
  const std::string text = read_text(object, key, "");
  if (text.empty()) return std::nullopt;
  if (text == "fp32" || text == "float32") return DType::fp32;
  if (text == "fp16" || text == "float16") return DType::fp16;
  if (text == "bf16" || text == "bfloat16") return DType::bf16;
  reject(key, "element type");
}

// What the release does where the file says nothing.
void take_defaults_of(const DeepSpeedVersion& version, StepConfig& config) {
  config.behaviour = behaviour_of(version);
  config.gradient_clipping = default_of("/gradient_clipping", version).to_number<double>();
  config.check_grad_overflow = default_of("/bf16/check_grad_overflow", version).as_bool();
  config.immediate_grad_update = default_of("/bf16/immediate_grad_update", version).as_bool();
}

void read_precision(const json::object& root, StepConfig& config) {
  const json::object& fp16 = section(root, "fp16");
  const json::object& bf16 = section(root, root.contains("bf16") ? "bf16" : "bfloat16");
  if (is_on(fp16, "enabled")) config.dtype = DType::fp16;
  if (is_on(bf16, "enabled")) {
    if (config.dtype == DType::fp16) reject("bf16.enabled", "choice beside fp16.enabled");
    config.dtype = DType::bf16;
  }
  LossScaleConfig& scale = config.loss_scale;
  read(fp16, "loss_scale", scale.static_scale);
  read_integer(fp16, "initial_scale_power", scale.initial_scale_power);
  read_integer(fp16, "loss_scale_window", scale.window);
  read_integer(fp16, "hysteresis", scale.hysteresis);
  read(fp16, "consecutive_hysteresis", scale.consecutive_hysteresis);
  read(fp16, "min_loss_scale", scale.min_scale);
  if (scale.window == 0) reject("fp16.loss_scale_window", "integer >= 1");
  read(bf16, "check_grad_overflow", config.check_grad_overflow);
  config.check_grad_overflow = config.check_grad_overflow && config.behaviour.can_check_bf16;
  read(bf16, "immediate_grad_update", config.immediate_grad_update);
  config.communication_dtype = read_dtype(root, "communication_data_type");
  config.grad_accum_dtype = read_dtype(section(root, "data_types"), "grad_accum_dtype");

  const auto master = [&](const json::object& part, std::string_view name, std::string_view key) {
    if (is_on(part, key)) config.unsupported.push_back(concat(name, ".", key));
  };
  master(fp16, "fp16", "fp16_master_weights_and_grads");
  master(bf16, "bf16", "bf16_master_weights_and_grads");
  master(bf16, "bf16", "bf16_optimizer_states");
}

void read_scaling(const json::object& root, StepConfig& config) {
  read(root, "prescale_gradients", config.prescale_gradients);
  read(root, "gradient_predivide_factor", config.gradient_predivide_factor);
  config.sum_gradients = read_text(root, "gradient_allreduce_op", "mean") == "sum";
}

void read_optimizer(const json::object& root, StepConfig& config) {
  config.optimizer = read_optimizer_config(root, config.unsupported);
}

void read_zero(const json::object& zero, StepConfig& config) {
  read_integer(zero, "stage", config.stage);
  if (config.stage > 3) reject("zero_optimization.stage", "stage (0, 1, 2, 3)");
  config.overlap_comm = config.stage == 3;
  read_integer(zero, "reduce_bucket_size", config.reduce_bucket_size);
  read(zero, "contiguous_gradients", config.contiguous_gradients);
  read(zero, "reduce_scatter", config.reduce_scatter);
  read(zero, "overlap_comm", config.overlap_comm);
  read(zero, "round_robin_gradients", config.round_robin_gradients);
  read(zero, "use_multi_rank_bucket_allreduce", config.use_multi_rank_bucket_allreduce);
  read_integer(zero, "sub_group_size", config.sub_group_size);
}

// Keys of stage 3 have two names; "stage3_" is the documented one.
void read_zero_3(const json::object& zero, StepConfig& config) {
  constexpr std::string_view kPrefix = "stage3_";
  const auto integer = [&](std::string_view documented, std::int64_t& out) {
    read_integer(zero, documented.substr(kPrefix.size()), out);
    read_integer(zero, documented, out);
  };
  integer("stage3_prefetch_bucket_size", config.prefetch_bucket_size);
  integer("stage3_param_persistence_threshold", config.param_persistence_threshold);
  integer("stage3_model_persistence_threshold", config.model_persistence_threshold);
  integer("stage3_max_live_parameters", config.max_live_parameters);
  integer("stage3_max_reuse_distance", config.max_reuse_distance);
  integer("stage3_module_granularity_threshold", config.module_granularity_threshold);
  const auto boolean = [&](std::string_view documented, bool& out) {
    read(zero, documented.substr(kPrefix.size()), out);
    read(zero, documented, out);
  };
  boolean("stage3_allgather_sequential", config.allgather_sequential);
  boolean("stage3_use_all_reduce_for_fetch_params", config.use_all_reduce_for_fetch_params);
  read_integer(zero, "zero_hpz_partition_size", config.hpz_partition_size);
  config.hpz_partition_size = std::max(config.hpz_partition_size, 1);
  double shard = -1;  // the default, and all other negative numbers, are "off"
  read(zero, "mics_shard_size", shard);
  if (shard > 0) read_integer(zero, "mics_shard_size", config.mics_shard_size);
  read(zero, "zero_quantized_weights", config.quantized_weights);
  read(zero, "zero_quantized_gradients", config.quantized_gradients);
  const json::object& leaf = section(zero, "leaf_module");
  config.leaf_module = {read_texts(leaf, "classes"), read_texts(leaf, "names"),
                        read_texts(leaf, "name_suffixes"),
                        config.behaviour.has_default_leaf_classes && !leaf.contains("classes")};
}

// Wherever DeepSpeed waits for the device only to measure.
void read_timer(const json::object& root, StepConfig& config) {
  const json::object& timer = section(section(root, "timers"), "throughput");
  for (const auto* key : {"enabled", "synchronized"}) {
    bool on = true;
    read(timer, key, on);
    config.timer_synchronizes = config.timer_synchronizes && on;
  }
}

// The section is read by deepspeed.checkpointing.checkpoint alone, which a model must call. Without
// model parallelism there is nothing to partition activations over.
void read_checkpointing(const json::object& root, StepConfig& config) {
  const json::value* value = find(section(root, "dstune"), "activation_checkpointing");
  if (value != nullptr) config.checkpointing = activation_checkpointing_from_json(*value);
  if (!config.checkpointing.by_deepspeed) return;
  const json::object& section_of_it = section(root, "activation_checkpointing");
  config.checkpoints_synchronize =
      is_on(section_of_it, "synchronize_checkpoint_boundary") || is_on(section_of_it, "profile");
  for (const auto* key : {"cpu_checkpointing", "contiguous_memory_optimization"}) {
    if (is_on(section_of_it, key)) {
      config.unsupported.push_back(concat("activation_checkpointing.", key));
    }
  }
}

// ZeRO++'s keys mean nothing below stage 3, zero_quantized_nontrainable_weights nothing to models
// all of whose parameters are trained, and zeropp_loco_param nothing without quantised gradients
// (docs/decisions/quantisation.md).
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

// In stage 0 DeepSpeed reads none of these keys but those of the optimizer, of which it dies: its
// CPU optimizer takes no parameters on a device. Below stage 3 it reads nothing of the parameters'
// offloading.
void find_unsupported_zero(const json::object& zero, StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.push_back(concat("zero_optimization.", key));
  };
  const auto add_offload = [&](std::string_view key, std::string_view old_key) {
    add(read_text(section(zero, key), "device", "none") != "none", key);
    add(is_on(zero, old_key), old_key);
  };
  add_offload("offload_optimizer", "cpu_offload");
  if (config.stage == 0) return;
  if (config.stage == 3) add_offload("offload_param", "cpu_offload_param");
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
  bool saves_by_reference = true;
  read(zero, "memory_efficient_linear", saves_by_reference);
  add(!saves_by_reference, "memory_efficient_linear: false");
  add(is_on(zero, "enable_sanity_checks"), "enable_sanity_checks");
  find_unsupported_quantization(zero, config);
}

// DeepSpeed refuses stage 0 with another accumulation type, and stages 2 and 3 with reduce_scatter
// together with either way of dividing early. Nor are stage 1's sums modelled without a bucket,
// from which DeepSpeed never gets the reduced gradients back.
void find_unsupported_gradients(StepConfig& config) {
  const auto add = [&](bool asked_for, std::string_view key) {
    if (asked_for) config.unsupported.emplace_back(key);
  };
  const bool is_stage_3 = config.stage == 3;
  const bool refused = config.stage >= 2 && config.reduce_scatter;
  const bool has_sums_in_lists = config.stage == 1 && !config.contiguous_gradients;
  add((config.stage == 0 || (has_sums_in_lists && !config.uses_bf16_optimizer())) &&
          config.accumulation_dtype() != config.dtype,
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
  take_defaults_of(deepspeed_version_of(ds_config), config);
  read_integer(ds_config, "train_micro_batch_size_per_gpu", config.micro_batch);
  read_integer(ds_config, "gradient_accumulation_steps", config.accumulation_steps);
  if (config.micro_batch < 1) reject("train_micro_batch_size_per_gpu", "integer >= 1");
  if (config.accumulation_steps < 1) reject("gradient_accumulation_steps", "integer >= 1");
  read(ds_config, "gradient_clipping", config.gradient_clipping);
  read_precision(ds_config, config);
  read_scaling(ds_config, config);
  read_optimizer(ds_config, config);
  read_timer(ds_config, config);
  read_checkpointing(ds_config, config);
  const json::object& zero = section(ds_config, "zero_optimization");
  read_zero(zero, config);
  read_zero_3(zero, config);
  find_unsupported_zero(zero, config);
  find_unsupported_gradients(config);
  find_unsupported_in_release(config);
  find_unsupported(ds_config, config);
  return config;
}

StepConfig make_step_config(const Experiment& experiment) {
  StepConfig config = make_step_config(experiment.ds_config);
  config.devices_per_node = experiment.settings.devices_per_node;
  bool quantizes_frozen = false;
  read(section(experiment.ds_config, "zero_optimization"), "zero_quantized_nontrainable_weights",
       quantizes_frozen);
  if (config.stage == 3 && quantizes_frozen &&
      !experiment.settings.model.fine_tuning.is_everything()) {
    config.unsupported.emplace_back("zero_optimization.zero_quantized_nontrainable_weights");
  }
  return config;
}

}  // namespace dstune
