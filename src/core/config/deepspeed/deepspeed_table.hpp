// Every key that DeepSpeed 0.19.8 reads. Made by scripts/make_deepspeed_keys.py: do not edit.
#pragma once

#include "core/input/key_rules.hpp"

// clang-format off
namespace dstune::deepspeed_table {

using namespace rules;  // NOLINT(google-build-using-namespace,google-global-names-in-headers)

inline constexpr std::string_view kVersion = "0.19.8";
inline constexpr std::string_view kUnknown =
    "is not known to DeepSpeed 0.19.8; passed on, not modelled";

/// Keys of earlier versions: a file with one of them is refused, whatever its value.
inline constexpr std::string_view kRemovedAtTop[] = {
    "nebula", "compression_training", "amp", "quantize_training", "sparse_gradients",
    "eigenvalue", "sparse_attention", "elasticity", "graph_harvesting", "curriculum_learning",
    "progressive_layer_drop",
};
inline constexpr std::string_view kRemovedInZero[] = {
    "mics_shard_size", "mics_hierarchical_params_gather", "zeropp_loco_param",
};

/// Keys that DeepSpeed replaces itself: {old, new}.
inline constexpr std::string_view kDeprecatedInZero[][2] = {
    {"cpu_offload_param", "offload_param"}, {"cpu_offload", "offload_optimizer"},
    {"stage3_gather_fp16_weights_on_model_save", "stage3_gather_16bit_weights_on_model_save"},
};

/// /zero_optimization
inline constexpr KeyRule kZeroOptimization[] = {
    integer("stage", 0, 3), boolean("contiguous_gradients"), boolean("reduce_scatter"),
    integer("reduce_bucket_size", 1), boolean("use_multi_rank_bucket_allreduce"),
    boolean("allgather_partitions"), integer("allgather_bucket_size", 0),
    boolean("overlap_comm").or_null(), boolean("compute_grad_norm"),
    boolean("load_from_fp32_weights"), boolean("elastic_checkpoint"),
    object("offload_param").or_null(), object("offload_optimizer").or_null(),
    object("zenflow").or_null(), integer("sub_group_size", 0),
    boolean("cpu_offload_param").or_null(), boolean("cpu_offload_use_pin_memory").or_null(),
    boolean("cpu_offload").or_null(),
    integer("stage3_prefetch_bucket_size", 0).also("prefetch_bucket_size"),
    integer("stage3_param_persistence_threshold", 0).also("param_persistence_threshold"),
    integer("stage3_model_persistence_threshold", 0).also("model_persistence_threshold"),
    integer("stage3_max_live_parameters", 0).also("max_live_parameters"),
    integer("stage3_max_reuse_distance", 0).also("max_reuse_distance"),
    boolean("stage3_gather_16bit_weights_on_model_save").also("gather_16bit_weights_on_model_save"),
    integer("stage3_module_granularity_threshold", kLowest).also("module_granularity_threshold"),
    boolean("stage3_use_all_reduce_for_fetch_params").also("use_all_reduce_for_fetch_params"),
    boolean("stage3_allgather_sequential").also("allgather_sequential"),
    boolean("stage3_gather_fp16_weights_on_model_save"), boolean("ignore_unused_parameters"),
    boolean("legacy_stage1"), boolean("round_robin_gradients"), boolean("parameter_alignment"),
    integer("zero_hpz_partition_size", 0), boolean("zero_quantized_weights"),
    boolean("zero_quantized_nontrainable_weights"), boolean("zero_quantized_gradients"),
    boolean("memory_efficient_linear"), boolean("pipeline_loading_checkpoint"),
    boolean("override_module_apply"), boolean("log_trace_cache_warnings"),
    boolean("enable_sanity_checks"), boolean("save_muon_momentum_buffer_in_memory"),
    object("leaf_module"),
};
/// /fp16
inline constexpr KeyRule kFp16[] = {
    boolean("enabled"), boolean("auto_cast"), number("loss_scale"),
    integer("initial_scale_power", kLowest), integer("loss_scale_window", kLowest),
    integer("hysteresis", kLowest), boolean("consecutive_hysteresis"),
    integer("min_loss_scale", kLowest), boolean("fp16_master_weights_and_grads"),
};
/// /bf16
inline constexpr KeyRule kBf16[] = {
    boolean("enabled"), boolean("immediate_grad_update"), boolean("check_grad_overflow"),
    boolean("bf16_master_weights_and_grads"), boolean("bf16_optimizer_states"),
};
/// /comms_logger
inline constexpr KeyRule kCommsLogger[] = {
    boolean("enabled"), boolean("prof_all"), list("prof_ops"), boolean("verbose"),
    boolean("debug"),
};
/// /compile
inline constexpr KeyRule kCompile[] = {
    boolean("deepcompile"), boolean("autoep_non_moe"), boolean("free_activation"),
    integer("free_activation_threshold", kLowest), boolean("offload_activation"),
    boolean("offload_activation_pin_memory"), boolean("offload_opt_states"),
    boolean("double_buffer"), boolean("symmetric_memory"), boolean("debug_log"),
    boolean("offload_parameters"), boolean("sync_before_reduce"), boolean("sync_after_reduce"),
    boolean("sync_before_allgather"), boolean("sync_after_allgather"),
    boolean("keep_int_input_tensors"), boolean("keep_all_input_tensors"),
    texts("passes", "z1|z3|autosp|autotp").or_null(),
};
/// /hybrid_engine
inline constexpr KeyRule kHybridEngine[] = {
    boolean("enabled"), integer("max_out_tokens", 1), integer("inference_tp_size", kLowest),
    boolean("release_inference_cache"), boolean("pin_parameters"),
    integer("tp_gather_partition_size", kLowest), boolean("enable_cuda_graph"),
};
/// /tensor_parallel
inline constexpr KeyRule kTensorParallel[] = {
    any("dtype"), integer("autotp_size", kLowest), boolean("tp_overlap_comm"),
    boolean("vocab_parallel_lm_head").or_null(),
    choice("vocab_parallel_ce_backend", "torch|liger"), object("tp").also("tensor_parallel"),
    any("injection_policy_tuple").or_null(), object("partition_config").or_null(),
    any_text("preset_model").or_null(), boolean("keep_module_on_host"),
    boolean("kernel_inject").also("replace_with_kernel_inject"),
};
/// /weight_quantization
inline constexpr KeyRule kWeightQuantization[] = {
    boolean("enabled"), integer("num_bits", kLowest), choice("q_type", "asymmetric|symmetric"),
    integer("q_groups", kLowest), object("quantized_initialization"), object("post_init_quant"),
};
/// /timers/throughput
inline constexpr KeyRule kTimersThroughput[] = {
    boolean("enabled"), boolean("synchronized"),
};
/// /tensorboard
inline constexpr KeyRule kTensorboard[] = {
    boolean("enabled"), any_text("output_path"), any_text("job_name"),
};
/// /comet
inline constexpr KeyRule kComet[] = {
    boolean("enabled"), integer("samples_log_interval", kLowest), any_text("project").or_null(),
    any_text("workspace").or_null(), any_text("api_key").or_null(),
    any_text("experiment_name").or_null(), any_text("experiment_key").or_null(),
    boolean("online").or_null(), any_text("mode").or_null(),
};
/// /wandb
inline constexpr KeyRule kWandb[] = {
    boolean("enabled"), any_text("group").or_null(), any_text("team").or_null(),
    any_text("project"),
};
/// /csv_monitor
inline constexpr KeyRule kCsvMonitor[] = {
    boolean("enabled"), any_text("output_path"), any_text("job_name"),
};
/// /zero_optimization/offload_param
inline constexpr KeyRule kZeroOptimizationOffloadParam[] = {
    choice("device", "none|cpu|nvme"), any_text("nvme_path").or_null(),
    integer("buffer_count", 0), integer("buffer_size", 0), integer("max_in_cpu", 0),
    boolean("pin_memory"),
};
/// /zero_optimization/offload_optimizer
inline constexpr KeyRule kZeroOptimizationOffloadOptimizer[] = {
    choice("device", "none|cpu|nvme"), any_text("nvme_path").or_null(),
    integer("buffer_count", 0), boolean("pin_memory"), boolean("pipeline_read"),
    boolean("pipeline_write"), boolean("fast_init"), within("ratio", 0.0, 1.0),
    boolean("super_offload"), within("cpuadam_cores_perc", 0.0, 1.0),
};
/// /zero_optimization/zenflow
inline constexpr KeyRule kZeroOptimizationZenflow[] = {
    between("topk_ratio", 0.0, 1.0), any_text("select_strategy"), any("select_interval"),
    any("update_interval"), boolean("overlap_step"), boolean("offload"),
    within("auto_ratio", 0.0, 1.0), integer("full_warm_up_rounds", kLowest),
    within("pt_reserved_cores_perc", 0.0, 1.0), integer("steps_per_epoch", kLowest).or_null(),
};
/// /zero_optimization/leaf_module
inline constexpr KeyRule kZeroOptimizationLeafModule[] = {
    texts("classes"), texts("names"), texts("name_suffixes"),
};
/// /tensor_parallel/tp
inline constexpr KeyRule kTensorParallelTp[] = {
    integer("tp_size", kLowest), integer("tp_grain_size", kLowest), any("mpu"), any("tp_group"),
};
/// /
inline constexpr KeyRule kTop[] = {
    object("zero_optimization"), any("train_batch_size"), any("train_micro_batch_size_per_gpu"),
    any("gradient_accumulation_steps"), boolean("managed_gradient_accumulation"),
    any("steps_per_print"), boolean("dump_state"), boolean("disable_python_gc"),
    boolean("disable_allgather"), any("communication_data_type"),
    any_text("seq_parallel_communication_data_type"), boolean("prescale_gradients"),
    number("gradient_predivide_factor"), any_text("gradient_allreduce_op"),
    object("activation_checkpointing"), object("comms_logger"), object("tensorboard"),
    object("wandb"), object("csv_monitor"), object("comet"), number("gradient_clipping"),
    object("fp16"), object("bf16").also("bfloat16").or_null(), object("torch_autocast"),
    object("optimizer"), boolean("zero_allow_untested_optimizer"),
    boolean("zero_force_ds_cpu_optimizer"), object("scheduler"), object("flops_profiler"),
    boolean("wall_clock_breakdown"), boolean("memory_breakdown"), object("autotuning"),
    boolean("use_data_before_expert_parallelism"), object("hybrid_engine"), object("pipeline"),
    object("data_efficiency"), object("checkpoint"), object("data_types"),
    object("aio").or_null(), boolean("dataloader_drop_last"), any("log_level"),
    boolean("datastates_ckpt"), object("weight_quantization"), object("compile"),
    object("timers"), object("tensor_parallel"), object("expert_parallel").or_null(),
    any("vocabulary_size"),
};
/// /activation_checkpointing
inline constexpr KeyRule kActivationCheckpointing[] = {
    boolean("partition_activations"), boolean("contiguous_memory_optimization"),
    boolean("cpu_checkpointing"), any("number_checkpoints"), boolean("profile"),
    boolean("synchronize_checkpoint_boundary"),
};
/// /aio
inline constexpr KeyRule kAio[] = {
    integer("block_size", kLowest), integer("queue_depth", kLowest),
    integer("intra_op_parallelism", kLowest), boolean("single_submit"), boolean("overlap_events"),
    boolean("use_gds"),
};
/// /checkpoint
inline constexpr KeyRule kCheckpoint[] = {
    any_text("tag_validation"), boolean("load_universal"), boolean("use_node_local_storage"),
    object("parallel_write"), boolean("checkpoint_serialization"), object("writer"),
};
/// /checkpoint/parallel_write
inline constexpr KeyRule kCheckpointParallelWrite[] = {
    boolean("pipeline_stage"),
};
/// /checkpoint/writer
inline constexpr KeyRule kCheckpointWriter[] = {
    any_text("type"), integer("io_buffer_size", kLowest), boolean("io_buffer_double"),
    boolean("show_statistics"), any("data_parallel"), boolean("decoupled"),
    integer("io_multiplier", kLowest),
};
/// /data_efficiency
inline constexpr KeyRule kDataEfficiency[] = {
    boolean("enabled"), integer("seed", kLowest), object("data_sampling"), object("data_routing"),
};
/// /data_efficiency/data_routing
inline constexpr KeyRule kDataEfficiencyDataRouting[] = {
    boolean("enabled"), object("random_ltd"),
};
/// /data_efficiency/data_routing/random_ltd
inline constexpr KeyRule kDataEfficiencyDataRoutingRandomLtd[] = {
    boolean("enabled"),
};
/// /data_efficiency/data_sampling
inline constexpr KeyRule kDataEfficiencyDataSampling[] = {
    boolean("enabled"), integer("num_epochs", kLowest), integer("num_workers", kLowest),
    boolean("pin_memory"), object("curriculum_learning"), object("dynamic_batching"),
};
/// /data_efficiency/data_sampling/curriculum_learning
inline constexpr KeyRule kDataEfficiencyDataSamplingCurriculumLearning[] = {
    boolean("enabled"),
};
/// /data_efficiency/data_sampling/dynamic_batching
inline constexpr KeyRule kDataEfficiencyDataSamplingDynamicBatching[] = {
    boolean("enabled"), any_text("lr_scaling_method"), integer("min_batch_size", kLowest),
    any("max_batch_size"), any_text("sequence_picking_order"), boolean("verbose"),
};
/// /data_types
inline constexpr KeyRule kDataTypes[] = {
    any("grad_accum_dtype"), any("param_dtype"), any("buffer_dtype"),
    any_text("keep_in_fp32_modules"),
};
/// /expert_parallel
inline constexpr KeyRule kExpertParallel[] = {
    boolean("enabled"), integer("autoep_size", kLowest),
    integer("expert_tensor_parallel_size", kLowest), boolean("validate_folding_routing"),
    boolean("async_split_plan"), any("preset_model"), any("moe_layer_pattern"),
    any("expert_pattern"), any("router_pattern"), boolean("use_grouped_mm"),
    boolean("disable_triton_grouped_mm"), any("route_norm"), number("route_scale"),
    any_text("score_apply"), any_text("combine_impl"), any_text("row_weighting_impl"),
    any_text("gate_up_impl"), any_text("comm_backend"), integer("comm_num_sm", kLowest),
    integer("comm_qp_margin", kLowest), integer("comm_max_tokens_per_rank", kLowest),
    any("num_expert_groups"), any("num_limited_groups"), any_text("score_func"),
    any_text("top_k"), any("load_balance_coeff"), any_text("routed_scaling_factor"),
    any("expert_w1"), any("expert_w2"), any("expert_w3"), any("num_experts_attr"),
    any("top_k_attr"), any("has_shared_experts"), any("shared_experts_pattern"),
    any("shared_experts_gate_pattern"), any("expert_activation"),
};
/// /flops_profiler
inline constexpr KeyRule kFlopsProfiler[] = {
    boolean("enabled"), number("recompute_fwd_factor"), integer("profile_step", kLowest),
    integer("module_depth", kLowest), integer("top_modules", kLowest), boolean("detailed"),
    any("output_file"),
};
/// /optimizer
inline constexpr KeyRule kOptimizer[] = {
    any("type"), object("params"), any("legacy_fusion"),
};
/// /optimizer/params
inline constexpr KeyRule kOptimizerParams[] = {
    any("max_grad_norm"),
};
/// /scheduler
inline constexpr KeyRule kScheduler[] = {
    any("type"), any("params"),
};
/// /timers
inline constexpr KeyRule kTimers[] = {
    object("throughput"),
};
/// /torch_autocast
inline constexpr KeyRule kTorchAutocast[] = {
    boolean("enabled"), any("dtype"), any("lower_precision_safe_modules"),
};

}  // namespace dstune::deepspeed_table
// clang-format on
