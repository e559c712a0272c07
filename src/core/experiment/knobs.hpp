// The table of knobs: one row for each key of the DeepSpeed configuration that changes a step, or
// that a search should know to change none. All code that reads, checks, searches, names or
// compares configurations goes over these rows. A new knob needs a row here, a member of
// StepConfig, and the code that acts on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/knob.hpp"

namespace dstune {

namespace knobs {

using namespace rules;  // NOLINT(google-build-using-namespace,google-global-names-in-headers)

void read_fp16(const json::object& section, const Knob& knob, StepConfig& config);
void read_bf16(const json::object& section, const Knob& knob, StepConfig& config);
void read_both(const json::object& section, const Knob& knob, StepConfig& config);
void read_sum(const json::object& section, const Knob& knob, StepConfig& config);
void read_optimizer(const json::object& section, const Knob& knob, StepConfig& config);
void read_checkpointing(const json::object& section, const Knob& knob, StepConfig& config);
void read_boundary(const json::object& section, const Knob& knob, StepConfig& config);
void read_overlap(const json::object& section, const Knob& knob, StepConfig& config);
void read_leaf_module(const json::object& section, const Knob& knob, StepConfig& config);
void read_secondary(const json::object& section, const Knob& knob, StepConfig& config);
void read_shard(const json::object& section, const Knob& knob, StepConfig& config);
void read_offload(const json::object& section, const Knob& knob, StepConfig& config);
void read_parameter_offload(const json::object& section, const Knob& knob, StepConfig& config);

constexpr bool is_never(const StepConfig& /*config*/) { return false; }
inline bool offloads_optimizer(const StepConfig& config) { return config.offloads_optimizer(); }
/// Whether offload_optimizer.ratio is more than valid or not.
inline bool divides_sub_groups(const StepConfig& config) {
  return config.stage == 3 && config.offloads_optimizer();
}

/// Whether something is read from drives and written to them.
inline bool uses_drives(const StepConfig& config) { return config.uses_drives(); }
inline bool swaps_optimizer(const StepConfig& config) { return config.swaps_optimizer(); }
inline bool swaps_parameters(const StepConfig& config) { return config.swaps_parameters(); }
/// Whether first masters can come straight from the files of parameters.
inline bool swaps_both(const StepConfig& config) {
  return config.swaps_optimizer() && config.swaps_parameters();
}
inline bool offloads_parameters(const StepConfig& config) { return config.offloads_parameters(); }
inline bool has_bf16_optimizer(const StepConfig& config) { return config.uses_bf16_optimizer(); }
inline bool has_own_gradients(const StepConfig& config) { return !config.uses_bf16_optimizer(); }
inline bool checks_bf16(const StepConfig& config) {
  return config.dtype == DType::bf16 && !config.uses_bf16_optimizer();
}
/// Whether a step without clipping saves the computation of the gradients' norm; all other steps
/// compute it anyway.
inline bool may_save_the_norm(const StepConfig& config) {
  return config.stage == 0 || config.uses_bf16_optimizer();
}
/// Whether sums over micro-steps can have another type than the model.
inline bool may_sum_in_other_type(const StepConfig& config) {
  return config.stage != 2 || config.behaviour.has_partition_sums;
}
/// Whether contiguous_gradients is read: an offloaded optimizer has its bucket in any case.
inline bool may_do_without_bucket(const StepConfig& config) {
  return has_own_gradients(config) && !(config.offloads_optimizer() && config.stage < 3);
}
/// Whether gradients are copied into a bucket. Without one they are summed over the ranks as they
/// come.
inline bool fills_buckets(const StepConfig& config) {
  return has_own_gradients(config) && config.contiguous_gradients;
}
inline bool cuts_buckets(const StepConfig& config) {
  return fills_buckets(config) && config.reduce_scatter;
}
inline bool asks_who_made_the_model(const StepConfig& config) {
  return config.memory_efficient_linear && !config.behaviour.replaces_linear_of_any_model;
}
inline bool asks_how_to_gather(const StepConfig& config) {
  return !config.allgather_sequential && config.mics_shard_size == 0 && !config.quantized_weights;
}

inline std::vector<std::int64_t> on_then_off(const ModelSizes& /*model*/) { return {1, 0}; }
inline std::vector<std::int64_t> off_then_on(const ModelSizes& /*model*/) { return {0, 1}; }

constexpr DefaultSince kClipping[] = {{kOldestDeepSpeed, 0}, {{0, 19, 3}, 1}};
constexpr DefaultSince kCheck[] = {{kOldestDeepSpeed, 0}, {{0, 19, 3}, 1}};
constexpr DefaultSince kImmediate[] = {{kOldestDeepSpeed, 0}, {{0, 16, 5}, 1}, {{0, 17, 1}, 0}};
constexpr DefaultSince kPinned[] = {{kOldestDeepSpeed, 0}, {{0, 19, 5}, 1}};

constexpr std::string_view kDTypes = "fp32|fp16|bf16|float32|float16|bfloat16";

constexpr Knob at_top(const KeyRule& rule, KnobMember member) { return {"", rule, member}; }
constexpr Knob of_fp16(const KeyRule& rule, KnobMember member) { return {"/fp16", rule, member}; }
template <class Value>
constexpr Knob of_scale(const KeyRule& rule, Value LossScaleConfig::*member) {
  return of_fp16(rule, ScaleMember<Value>{member}).changing_when(is_never);
}
constexpr Knob of_bf16(const KeyRule& rule, KnobMember member, StageSet stages) {
  return {"/bf16", rule, member, stages};
}
constexpr Knob of_zero(const KeyRule& rule, KnobMember member, StageSet stages) {
  return {"/zero_optimization", rule, member, stages};
}
constexpr Knob of_stage_3(const KeyRule& rule, KnobMember member) {
  return of_zero(rule, member, in_stages(3));
}
constexpr Knob of_swapping(const KeyRule& rule, KnobMember member) {
  return Knob{"/zero_optimization/offload_optimizer", rule, member, in_stages(3)}.when(
      swaps_optimizer);
}
constexpr Knob of_parameter_swapping(const KeyRule& rule, KnobMember member) {
  return Knob{"/zero_optimization/offload_param", rule, member, in_stages(3)}.when(
      swaps_parameters);
}
constexpr Knob of_aio(const KeyRule& rule, KnobMember member) {
  return Knob{"/aio", rule, member, in_stages(3)}.when(uses_drives);
}
/// A knob that nothing in a step reads.
constexpr Knob idle(const KeyRule& rule) { return of_zero(rule, {}, in_stages()); }
/// A knob that asks for a feature that is not modelled (StepConfig::unsupported).
constexpr Knob not_modelled(std::string_view section, const KeyRule& rule, StageSet stages) {
  return {section, rule, {}, stages};
}

/// Knobs of a section stand together; a knob on which others depend stands before them.
inline constexpr Knob kTable[] = {
    of_zero(integer("stage", 0, 3), &StepConfig::stage, kAllStages),
    at_top(integer("train_micro_batch_size_per_gpu", 1, kLargestBatch), &StepConfig::micro_batch),
    at_top(integer("gradient_accumulation_steps", 1, kLargestBatch),
           &StepConfig::accumulation_steps),
    at_top(at_least("gradient_clipping", 0), &StepConfig::gradient_clipping)
        .changing_when(may_save_the_norm)
        .with_auto([](std::int64_t) -> std::int64_t { return 1; })
        .by_release(kClipping),
    at_top(choice("communication_data_type", "fp16|bf16|fp32").in_any_case().or_null(),
           &StepConfig::communication_dtype)
        .deciding_messages(),
    at_top(boolean("prescale_gradients"), &StepConfig::prescale_gradients),
    at_top(above("gradient_predivide_factor", 0), &StepConfig::gradient_predivide_factor),
    at_top(choice("gradient_allreduce_op", "mean|sum").in_any_case(), &StepConfig::sum_gradients)
        .read_by(read_sum),
    at_top(object("optimizer"), &StepConfig::optimizer).read_by(read_optimizer),

    of_fp16(boolean("enabled"), &StepConfig::dtype).read_by(read_fp16).deciding_messages(),
    of_scale(at_least("loss_scale", 0).but_no_boolean(), &LossScaleConfig::static_scale),
    of_scale(integer("initial_scale_power", 0, 127), &LossScaleConfig::initial_scale_power),
    of_scale(integer("loss_scale_window", 1, kMostInt).but_no_boolean(), &LossScaleConfig::window),
    of_scale(integer("hysteresis", 0, kMostInt), &LossScaleConfig::hysteresis),
    of_scale(boolean("consecutive_hysteresis"), &LossScaleConfig::consecutive_hysteresis),
    of_scale(integer("min_loss_scale", 0).but_no_boolean(), &LossScaleConfig::min_scale),

    of_bf16(boolean("enabled"), &StepConfig::dtype, kAllStages)
        .read_by(read_bf16)
        .deciding_messages(),
    of_bf16(boolean("check_grad_overflow"), &StepConfig::check_grad_overflow, in_stages(1, 2))
        .when(checks_bf16)
        .by_release(kCheck),
    of_bf16(boolean("immediate_grad_update"), &StepConfig::immediate_grad_update, in_stages(1))
        .when(has_bf16_optimizer)
        .by_release(kImmediate),

    Knob{"/data_types", choice("grad_accum_dtype", kDTypes).or_null(),
         &StepConfig::grad_accum_dtype, kAllStages}
        .when(may_sum_in_other_type)
        .deciding_messages(),
    Knob{"/timers/throughput", boolean("enabled"), &StepConfig::timer_synchronizes}.read_by(
        read_both),
    Knob{"/timers/throughput", boolean("synchronized"), &StepConfig::timer_synchronizes}.read_by(
        read_both),
    Knob{"/dstune", any("activation_checkpointing"), &StepConfig::checkpointing}.read_by(
        read_checkpointing),
    Knob{"/activation_checkpointing", boolean("synchronize_checkpoint_boundary"),
         &StepConfig::checkpoints_synchronize}
        .read_by(read_boundary),
    Knob{"/activation_checkpointing", boolean("profile"), &StepConfig::checkpoints_synchronize}
        .read_by(read_boundary),

    of_zero(boolean("overlap_comm").or_null(), &StepConfig::overlap_comm, kZeroStages)
        .when(has_own_gradients)
        .read_by(read_overlap)
        .searched(on_then_off),
    of_zero(boolean("contiguous_gradients"), &StepConfig::contiguous_gradients, kZeroStages)
        .when(may_do_without_bucket)
        .searched(on_then_off),
    of_zero(boolean("reduce_scatter"), &StepConfig::reduce_scatter, kZeroStages)
        .when(fills_buckets)
        .searched(on_then_off),
    of_zero(integer("reduce_bucket_size", 1, kMostElements), &StepConfig::reduce_bucket_size,
            kZeroStages)
        .when(has_own_gradients)
        .with_auto([](std::int64_t h) { return h * h; })
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {model.trained_layer, std::min(4 * model.trained_layer, model.trained),
                  model.trained};
        }),
    of_zero(boolean("use_multi_rank_bucket_allreduce"),
            &StepConfig::use_multi_rank_bucket_allreduce, in_stages(1, 2))
        .when(cuts_buckets)
        .searched(on_then_off),
    of_zero(boolean("round_robin_gradients"), &StepConfig::round_robin_gradients, in_stages(1, 2))
        .when(has_own_gradients)
        .searched(off_then_on),

    of_stage_3(
        integer("stage3_prefetch_bucket_size", 0, kMostElements).also("prefetch_bucket_size"),
        &StepConfig::prefetch_bucket_size)
        // This is int(0.9 h^2), computed in integers so that the rounding of 0.9 cannot show.
        .with_auto([](std::int64_t h) { return 9 * (h * h) / 10; })
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {0, model.layer, std::min(4 * model.layer, model.all)};
        }),
    of_stage_3(integer("stage3_param_persistence_threshold").also("param_persistence_threshold"),
               &StepConfig::param_persistence_threshold)
        .with_auto([](std::int64_t h) { return 10 * h; })
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {0, 10 * model.hidden_size, model.all};
        }),
    of_stage_3(integer("stage3_max_live_parameters").also("max_live_parameters"),
               &StepConfig::max_live_parameters)
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {2 * model.layer, model.no_limit()};
        }),
    of_stage_3(integer("stage3_max_reuse_distance").also("max_reuse_distance"),
               &StepConfig::max_reuse_distance)
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {0, model.no_limit()};
        }),
    of_stage_3(integer("sub_group_size"), &StepConfig::sub_group_size)
        .searched([](const ModelSizes& model) -> std::vector<std::int64_t> {
          return {std::max<std::int64_t>(1, model.trained_layer / model.ranks), model.no_limit()};
        }),
    of_stage_3(integer("stage3_model_persistence_threshold").also("model_persistence_threshold"),
               &StepConfig::model_persistence_threshold),
    of_stage_3(integer("stage3_module_granularity_threshold").also("module_granularity_threshold"),
               &StepConfig::module_granularity_threshold),
    of_stage_3(object("leaf_module").or_null(), &StepConfig::leaf_module).read_by(read_leaf_module),
    of_stage_3(boolean("stage3_allgather_sequential").also("allgather_sequential"),
               &StepConfig::allgather_sequential),
    of_stage_3(
        boolean("stage3_use_all_reduce_for_fetch_params").also("use_all_reduce_for_fetch_params"),
        &StepConfig::use_all_reduce_for_fetch_params)
        .when(asks_how_to_gather),
    of_stage_3(boolean("memory_efficient_linear"), &StepConfig::memory_efficient_linear),
    Knob{"/dstune", boolean("zero_init"), &StepConfig::zero_init, in_stages(3)}.when(
        asks_who_made_the_model),
    of_stage_3(boolean("zero_quantized_weights"), &StepConfig::quantized_weights)
        .deciding_messages(),
    of_stage_3(boolean("zero_quantized_gradients"), &StepConfig::quantized_gradients)
        .deciding_messages(),
    of_stage_3(integer("zero_hpz_partition_size", 0, kMostInt), &StepConfig::hpz_partition_size)
        .read_by(read_secondary)
        .deciding_messages(),
    of_stage_3(integer("mics_shard_size", -1, kMostInt), &StepConfig::mics_shard_size)
        .read_by(read_shard)
        .deciding_messages(),

    idle(boolean("allgather_partitions")),
    idle(integer("allgather_bucket_size", 0, kMostElements).must_be_even()),
    idle(boolean("load_from_fp32_weights")),
    idle(boolean("elastic_checkpoint")),
    idle(boolean("ignore_unused_parameters")),
    idle(boolean("stage3_gather_16bit_weights_on_model_save")
             .also("gather_16bit_weights_on_model_save")),
    idle(boolean("pipeline_loading_checkpoint")),
    idle(boolean("log_trace_cache_warnings")),

    not_modelled("/zero_optimization", boolean("cpu_offload_param").or_null(), in_stages(3)),
    of_zero(object("offload_param").or_null(), {}, in_stages(3)),
    Knob{"/zero_optimization/offload_param", choice("device", "none|cpu|nvme"),
         &StepConfig::parameter_device, in_stages(3)}
        .read_by(read_parameter_offload),
    Knob{"/zero_optimization/offload_param", boolean("pin_memory"),
         &StepConfig::pin_offloaded_parameters, in_stages(3)}
        .when(offloads_parameters)
        .by_release(kPinned),
    of_parameter_swapping(any_text("nvme_path").or_null(), &StepConfig::parameter_nvme_path),
    of_parameter_swapping(integer("buffer_count", 0, kMostInt),
                          &StepConfig::parameter_buffer_count),
    of_parameter_swapping(integer("buffer_size", 0, kMostElements),
                          &StepConfig::parameter_buffer_size),
    of_parameter_swapping(integer("max_in_cpu", 0, kMostElements),
                          &StepConfig::max_parameters_in_cpu),
    Knob{"/zero_optimization/offload_optimizer", choice("device", "none|cpu|nvme"),
         &StepConfig::optimizer_device, kAllStages}
        .read_by(read_offload),
    Knob{"/zero_optimization/offload_optimizer", boolean("pin_memory"),
         &StepConfig::pin_offloaded_optimizer, kZeroStages}
        .when(offloads_optimizer)
        .by_release(kPinned),
    Knob{"/zero_optimization/offload_optimizer", within("ratio", 0.0, 1.0),
         &StepConfig::offload_ratio, kAllStages}
        .when(divides_sub_groups),
    of_swapping(any_text("nvme_path").or_null(), &StepConfig::optimizer_nvme_path),
    of_swapping(integer("buffer_count", 0, kMostInt), &StepConfig::optimizer_buffer_count),
    of_swapping(boolean("pipeline_read"), &StepConfig::pipeline_read),
    of_swapping(boolean("pipeline_write"), &StepConfig::pipeline_write),
    Knob{"/zero_optimization/offload_optimizer", boolean("fast_init"), &StepConfig::fast_init,
         in_stages(3)}
        .when(swaps_both),
    of_aio(integer("block_size", 1), AioMember<Bytes>{&AioSettings::block_size}),
    of_aio(integer("queue_depth", 1, kMostInt), AioMember<int>{&AioSettings::queue_depth}),
    of_aio(integer("intra_op_parallelism", 1, kMostInt),
           AioMember<int>{&AioSettings::intra_op_parallelism}),
    of_aio(boolean("single_submit"), AioMember<bool>{&AioSettings::single_submit}),
    of_aio(boolean("overlap_events"), AioMember<bool>{&AioSettings::overlap_events}),
};

}  // namespace knobs

inline constexpr std::span<const Knob> kKnobs = knobs::kTable;

/// The row of a key that is in the table; any other key does not compile.
consteval const Knob& knob_of(std::string_view section, std::string_view key) {
  return *std::ranges::find_if(
      kKnobs, [&](const Knob& knob) { return knob.section == section && knob.rule.key == key; });
}

/// The JSON pointer of the knob: "/zero_optimization/overlap_comm".
std::string pointer_of(const Knob& knob);

/// Whether the step of `config` reads the knob.
bool is_read(const Knob& knob, const StepConfig& config);
/// Whether another value of the knob can make another step. Two values may still make the same step
/// for a model of some size.
bool changes_step(const Knob& knob, const StepConfig& config);

bool is_same(const Knob& knob, const StepConfig& one, const StepConfig& other);
/// Gives `to` the value that `from` has.
void copy_knob(const Knob& knob, const StepConfig& from, StepConfig& to);

/// The default that the release has for a knob with `defaults`.
json::value default_of(const Knob& knob, const DeepSpeedVersion& version);

/// Reads every knob that the checked JSON has; the others get the defaults of config.version.
/// @throws std::invalid_argument  if the JSON was not checked
void read_knobs(const json::object& ds_config, StepConfig& config);
/// Gives the knob its value for a JSON that does not name it.
void set_to_default(const Knob& knob, StepConfig& config);

/// Whether the value at `pointer` changes neither the step of `stage` nor what is valid there,
/// whatever the rest of the configuration is. False where that is not known, which costs time but
/// nothing else.
bool does_nothing(std::string_view pointer, int stage);

}  // namespace dstune
