#include "core/config/deepspeed_keys.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the tables read like a document

constexpr KeyRule kFp16Rules[] = {
    boolean("enabled"),
    boolean("auto_cast"),
    at_least("loss_scale", 0),
    integer("initial_scale_power", 0, 127),
    integer("loss_scale_window", 1, kMostInt),
    integer("hysteresis", 0, kMostInt),
    boolean("consecutive_hysteresis"),
    at_least("min_loss_scale", 0),
    boolean("fp16_master_weights_and_grads"),
};
constexpr Section kFp16{.rules = kFp16Rules, .auto_is_default = true};

constexpr KeyRule kBf16Rules[] = {
    boolean("enabled"),
    boolean("check_grad_overflow"),
    boolean("immediate_grad_update"),
    boolean("bf16_master_weights_and_grads"),
    boolean("bf16_optimizer_states"),
};
constexpr Section kBf16{.rules = kBf16Rules, .auto_is_default = true};

constexpr KeyRule kOffloadOptimizerRules[] = {
    choice("device", "none|cpu|nvme"),
    text("nvme_path").or_null(),
    integer("buffer_count"),
    boolean("pin_memory"),
    boolean("pipeline_read"),
    boolean("pipeline_write"),
    boolean("fast_init"),
    fraction("ratio"),
    boolean("super_offload"),
    fraction("cpuadam_cores_perc"),
};
constexpr Section kOffloadOptimizer{.rules = kOffloadOptimizerRules, .auto_is_default = true};

constexpr KeyRule kOffloadParamRules[] = {
    choice("device", "none|cpu|nvme"),        text("nvme_path").or_null(), integer("buffer_count"),
    integer("buffer_size", 0, kMostElements), integer("max_in_cpu"),       boolean("pin_memory"),
};
constexpr Section kOffloadParam{.rules = kOffloadParamRules, .auto_is_default = true};

constexpr KeyRule kLeafModuleRules[] = {list("classes"), list("names"), list("name_suffixes")};
constexpr Section kLeafModule{.rules = kLeafModuleRules, .auto_is_default = true};

constexpr KeyRule kZeroRules[] = {
    any("stage"),
    boolean("contiguous_gradients"),
    boolean("reduce_scatter"),
    boolean("use_multi_rank_bucket_allreduce"),
    integer("reduce_bucket_size", 1, kMostElements),
    boolean("allgather_partitions"),
    integer("allgather_bucket_size", 2, kMostElements).must_be_even(),
    boolean("overlap_comm").or_null(),
    boolean("round_robin_gradients"),
    boolean("ignore_unused_parameters"),
    boolean("load_from_fp32_weights"),
    boolean("elastic_checkpoint"),
    only("legacy_stage1", false),
    integer("sub_group_size", 1),
    integer("stage3_max_live_parameters").also("max_live_parameters"),
    integer("stage3_max_reuse_distance").also("max_reuse_distance"),
    integer("stage3_prefetch_bucket_size", 0, kMostElements).also("prefetch_bucket_size"),
    integer("stage3_param_persistence_threshold").also("param_persistence_threshold"),
    integer("stage3_model_persistence_threshold").also("model_persistence_threshold"),
    boolean("stage3_gather_16bit_weights_on_model_save").also("gather_16bit_weights_on_model_save"),
    boolean("stage3_gather_fp16_weights_on_model_save"),
    integer("stage3_module_granularity_threshold").also("module_granularity_threshold"),
    boolean("stage3_use_all_reduce_for_fetch_params").also("use_all_reduce_for_fetch_params"),
    boolean("stage3_allgather_sequential").also("allgather_sequential"),
    boolean("memory_efficient_linear"),
    object("offload_optimizer", kOffloadOptimizer).or_null(),
    object("offload_param", kOffloadParam).or_null(),
    boolean("cpu_offload").or_null(),
    boolean("cpu_offload_params").also("cpu_offload_param").or_null(),
    boolean("cpu_offload_use_pin_memory").or_null(),
    integer("zero_hpz_partition_size", 1, kMostInt),
    boolean("zero_quantized_weights"),
    boolean("zero_quantized_nontrainable_weights"),
    boolean("zero_quantized_gradients"),
    object("zeropp_loco_param").or_null(),
    integer("mics_shard_size", -1, kMostInt),
    boolean("mics_hierarchical_params_gather"),
    boolean("enable_sanity_checks"),
    boolean("log_trace_cache_warnings"),
    object("leaf_module", kLeafModule),
    boolean("override_module_apply"),
    boolean("pipeline_loading_checkpoint"),
    object("zenflow").or_null(),
};
constexpr Section kZero{.rules = kZeroRules, .auto_is_default = true};

constexpr KeyRule kOptimizerParamsRules[] = {
    at_least("lr", 0),
    list("betas"),
    at_least("eps", 0),
    at_least("weight_decay", 0),
    boolean("torch_adam"),
    boolean("adam_w_mode"),
    boolean("bias_correction"),
    boolean("amsgrad"),
    at_least("momentum", 0),
    at_least("dampening", 0),
    boolean("nesterov"),
    at_least("lr_decay", 0),
    at_least("initial_accumulator_value", 0),
    at_least("max_coeff", 0),
    at_least("min_coeff", 0),
    boolean("eps_inside_sqrt"),
    boolean("maximize"),
    boolean("differentiable"),
    boolean("capturable"),
    boolean("fused").or_null(),
    boolean("foreach").or_null(),
};
constexpr Section kOptimizerParams{.rules = kOptimizerParamsRules, .other_keys = true};

constexpr KeyRule kOptimizerRules[] = {
    text("type"),
    object("params", kOptimizerParams),
    boolean("legacy_fusion"),
};
constexpr Section kOptimizer{.rules = kOptimizerRules, .other_keys = true};

constexpr KeyRule kDataTypesRules[] = {choice("grad_accum_dtype", "fp32|fp16|bf16").or_null()};
constexpr Section kDataTypes{.rules = kDataTypesRules, .auto_is_default = true};

constexpr KeyRule kActivationCheckpointingRules[] = {
    boolean("partition_activations"),           boolean("cpu_checkpointing"),
    boolean("contiguous_memory_optimization"),  integer("number_checkpoints").or_null(),
    boolean("synchronize_checkpoint_boundary"), boolean("profile"),
};
constexpr Section kActivationCheckpointing{.rules = kActivationCheckpointingRules,
                                           .other_keys = true};

constexpr KeyRule kAioRules[] = {
    integer("block_size", 1),   integer("queue_depth", 1), integer("intra_op_parallelism", 1),
    integer("thread_count", 1), boolean("single_submit"),  boolean("overlap_events"),
    boolean("use_gds"),
};
constexpr Section kAio{.rules = kAioRules, .other_keys = true};

constexpr KeyRule kTopRules[] = {
    any("train_batch_size"),
    any("train_micro_batch_size_per_gpu"),
    any("gradient_accumulation_steps"),
    object("optimizer", kOptimizer),
    object("scheduler"),
    object("fp16", kFp16),
    object("bf16", kBf16).also("bfloat16"),
    object("zero_optimization", kZero),
    at_least("gradient_clipping", 0),
    boolean("prescale_gradients"),
    above("gradient_predivide_factor", 0),
    choice("gradient_allreduce_op", "mean|sum"),
    choice("communication_data_type", "fp16|bf16|fp32").or_null(),
    choice("seq_parallel_communication_data_type", "fp16|bf16|fp32").or_null(),
    boolean("sparse_gradients"),
    boolean("disable_allgather"),
    boolean("zero_allow_untested_optimizer"),
    boolean("zero_force_ds_cpu_optimizer"),
    boolean("managed_gradient_accumulation"),
    boolean("wall_clock_breakdown"),
    boolean("memory_breakdown"),
    boolean("dump_state"),
    boolean("graph_harvesting"),
    integer("steps_per_print").or_null(),
    object("data_types", kDataTypes),
    object("torch_autocast"),
    object("amp"),
    object("timers"),
    object("flops_profiler"),
    object("activation_checkpointing", kActivationCheckpointing),
    object("aio", kAio),
    any("compile"),
    any("checkpoint"),
    any("comms_logger"),
    any("compression_training"),
    any("csv_monitor"),
    any("curriculum_learning"),
    any("data_efficiency"),
    any("dataloader_drop_last"),
    any("eigenvalue"),
    any("elasticity"),
    any("hybrid_engine"),
    any("monitor_config"),
    any("nebula"),
    any("pipeline"),
    any("progressive_layer_drop"),
    any("sparse_attention"),
    any("tensorboard"),
    any("wandb"),
    any("autotuning"),
    any("dstune"),
};
constexpr Section kTop{.rules = kTopRules, .other_keys = true};

}  // namespace

const Section& deepspeed_section() { return kTop; }

}  // namespace dstune
