#include "core/config/deepspeed/deepspeed_keys.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/experiment/knobs.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the tables read like a document

namespace table = deepspeed_table;

// A section that DeepSpeed checks with pydantic.
constexpr Section checked(std::span<const KeyRule> rules) {
  return {.rules = rules, .auto_is_default = true, .coerces = true};
}

// A section that DeepSpeed reads as a dictionary: it takes what it knows and ignores the rest.
constexpr Section read(std::span<const KeyRule> rules) {
  return {.rules = rules,
          .other_keys = true,
          .auto_is_kept = true,
          .takes_bits = true,
          .other_keys_warning = table::kUnknown};
}

// A section of that kind in which "auto" means nothing.
constexpr Section read_as_is(std::span<const KeyRule> rules) {
  return {.rules = rules,
          .other_keys = true,
          .takes_bits = true,
          .other_keys_warning = table::kUnknown};
}

// A section whose other keys belong to somebody else, such as an optimizer's class.
constexpr Section open(std::span<const KeyRule> rules) {
  return {.rules = rules, .other_keys = true};
}

// DeepSpeed's keys with the rules that the table of knobs has for some of them. A knob that
// DeepSpeed does not have, or whose alias is not DeepSpeed's, does not compile.
template <std::size_t Count>
consteval std::array<KeyRule, Count> with_knobs(std::string_view section,
                                                const KeyRule (&keys)[Count]) {
  auto rules = std::to_array(keys);
  for (const Knob& knob : kKnobs) {
    if (knob.section != section) continue;
    const auto known = std::ranges::find(rules, knob.rule.key, &KeyRule::key);
    if (known == rules.end()) {
      const bool is_removed = std::ranges::find(table::kRemovedInZero, knob.rule.key) !=
                              std::end(table::kRemovedInZero);
      if (!is_removed) throw std::logic_error("no such key");
    } else if (known->alias != knob.rule.alias) {
      throw std::logic_error("another alias");
    } else {
      rules = overlaid(rules, {knob.rule});
    }
  }
  return rules;
}

// What is written below is stricter than DeepSpeed, or says what no default shows.

constexpr auto kFp16Rules = with_knobs("/fp16", table::kFp16);
constexpr Section kFp16 = checked(kFp16Rules);
constexpr auto kBf16Rules = with_knobs("/bf16", table::kBf16);
constexpr Section kBf16 = checked(kBf16Rules);

constexpr auto kOffloadParamRules =
    with_knobs("/zero_optimization/offload_param", table::kZeroOptimizationOffloadParam);
constexpr Section kOffloadParam = checked(kOffloadParamRules);
constexpr auto kOffloadOptimizerRules =
    with_knobs("/zero_optimization/offload_optimizer", table::kZeroOptimizationOffloadOptimizer);
constexpr Section kOffloadOptimizer = checked(kOffloadOptimizerRules);

constexpr auto kZenFlowRules =
    overlaid(table::kZeroOptimizationZenflow, {choice("select_strategy", "auto|step|epoch")});
constexpr Section kZenFlow = checked(kZenFlowRules);

constexpr auto kLeafModuleRules =
    overlaid(table::kZeroOptimizationLeafModule,
             {texts("classes").or_a_single_one(), texts("names").or_a_single_one(),
              texts("name_suffixes").or_a_single_one()});
constexpr Section kLeafModule = checked(kLeafModuleRules);

// MiCS is modelled, although present DeepSpeed has removed it: see earlier_forms.hpp.
constexpr auto kZeroRules =
    extended(overlaid(with_knobs("/zero_optimization", table::kZeroOptimization),
                      {any("stage"),  // a list of stages too: see batch_sizes.hpp
                       only("legacy_stage1", false), object("offload_optimizer", kOffloadOptimizer),
                       object("offload_param", kOffloadParam), object("zenflow", kZenFlow),
                       object("leaf_module", kLeafModule).or_null()}),
             {knob_of("/zero_optimization", "mics_shard_size").rule,
              boolean("mics_hierarchical_params_gather")});
constexpr Section kZero = checked(kZeroRules);

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
constexpr Section kOptimizerParams = open(kOptimizerParamsRules);

constexpr auto kOptimizerRules =
    overlaid(table::kOptimizer,
             {text("type"), object("params", kOptimizerParams), boolean("legacy_fusion")});
constexpr Section kOptimizer = read_as_is(kOptimizerRules);

constexpr auto kSchedulerRules =
    overlaid(table::kScheduler, {text("type").or_null(), object("params").or_null()});
constexpr Section kScheduler = read_as_is(kSchedulerRules);

constexpr auto kDataTypesRules = overlaid(with_knobs("/data_types", table::kDataTypes),
                                          {texts("keep_in_fp32_modules").or_auto()});
constexpr Section kDataTypes = read_as_is(kDataTypesRules);

constexpr auto kActivationCheckpointingRules =
    overlaid(table::kActivationCheckpointing, {integer("number_checkpoints").or_null()});
constexpr Section kActivationCheckpointing = read(kActivationCheckpointingRules);

constexpr auto kAioRules = with_knobs("/aio", table::kAio);
constexpr Section kAio = read_as_is(kAioRules);

constexpr auto kFlopsProfilerRules =
    overlaid(table::kFlopsProfiler, {integer("profile_step", 0), integer("module_depth", -1),
                                     integer("top_modules", 0), any_text("output_file").or_null()});
constexpr Section kFlopsProfiler = read(kFlopsProfilerRules);

constexpr Section kParallelWrite = read(table::kCheckpointParallelWrite);
constexpr auto kCheckpointWriterRules =
    overlaid(table::kCheckpointWriter,
             {choice("type", "MOCK|PYTHON|FAST").in_any_case().or_null(),
              choice("data_parallel", "REPLICA|SOCKET|MACHINE").in_any_case().or_null()});
constexpr Section kCheckpointWriter = read(kCheckpointWriterRules);
constexpr auto kCheckpointRules =
    overlaid(table::kCheckpoint, {choice("tag_validation", "Warn|Ignore|Fail").in_any_case(),
                                  object("parallel_write", kParallelWrite),
                                  object("writer", kCheckpointWriter).or_null()});
constexpr Section kCheckpoint = read(kCheckpointRules);

constexpr const char* kTorchDTypes =
    "bf16|fp16|fp32|bfloat16|float16|float32|half|float|int8|torch.bfloat16|torch.float16|"
    "torch.float32|torch.int8";
constexpr auto kTorchAutocastRules = overlaid(
    table::kTorchAutocast, {choice("dtype", kTorchDTypes), texts("lower_precision_safe_modules")});
constexpr Section kTorchAutocast = read(kTorchAutocastRules);

constexpr Section kThroughput = checked(table::kTimersThroughput);
constexpr auto kTimersRules = overlaid(table::kTimers, {object("throughput", kThroughput)});
constexpr Section kTimers = read(kTimersRules);

constexpr Section kTensorParallelTp = checked(table::kTensorParallelTp);
constexpr auto kTensorParallelRules =
    overlaid(table::kTensorParallel, {object("tp", kTensorParallelTp)});
constexpr Section kTensorParallel = checked(kTensorParallelRules);

constexpr Section kCompile = checked(table::kCompile);
constexpr Section kCommsLogger = checked(table::kCommsLogger);
constexpr Section kHybridEngine = checked(table::kHybridEngine);
constexpr Section kWeightQuantization = checked(table::kWeightQuantization);
constexpr Section kTensorboard = checked(table::kTensorboard);
constexpr Section kWandb = checked(table::kWandb);
constexpr Section kCsvMonitor = checked(table::kCsvMonitor);
constexpr Section kComet = checked(table::kComet);

constexpr auto kDynamicBatchingRules =
    overlaid(table::kDataEfficiencyDataSamplingDynamicBatching,
             {integer("min_batch_size"), integer("max_batch_size")});
constexpr Section kDynamicBatching = open(kDynamicBatchingRules);
constexpr auto kDataSamplingRules =
    overlaid(table::kDataEfficiencyDataSampling,
             {object("curriculum_learning"), object("dynamic_batching", kDynamicBatching)});
constexpr Section kDataSampling = open(kDataSamplingRules);
constexpr Section kDataRouting = open(table::kDataEfficiencyDataRouting);
constexpr auto kDataEfficiencyRules =
    overlaid(table::kDataEfficiency,
             {object("data_sampling", kDataSampling), object("data_routing", kDataRouting)});
constexpr Section kDataEfficiency = read(kDataEfficiencyRules);
constexpr Section kExpertParallel = read(table::kExpertParallel);

constexpr auto kTopRules = extended(
    overlaid(
        with_knobs("", table::kTop),
        {any("train_micro_batch_size_per_gpu"),  // a list, or "auto": see batch_sizes.hpp
         any("gradient_accumulation_steps"),
         object("optimizer", kOptimizer),
         object("scheduler", kScheduler),
         object("fp16", kFp16),
         object("bf16", kBf16),
         object("zero_optimization", kZero),
         choice("seq_parallel_communication_data_type", "fp16|bf16|fp32").in_any_case().or_null(),
         integer("steps_per_print").or_null(),
         integer("vocabulary_size").or_null(),
         any("datastates_ckpt"),
         object("data_types", kDataTypes),
         object("torch_autocast", kTorchAutocast),
         object("timers", kTimers),
         object("flops_profiler", kFlopsProfiler),
         object("activation_checkpointing", kActivationCheckpointing),
         object("aio", kAio),
         object("checkpoint", kCheckpoint),
         object("compile", kCompile),
         object("comms_logger", kCommsLogger),
         object("hybrid_engine", kHybridEngine),
         object("tensor_parallel", kTensorParallel),
         object("expert_parallel", kExpertParallel),
         object("weight_quantization", kWeightQuantization),
         object("data_efficiency", kDataEfficiency),
         object("tensorboard", kTensorboard),
         object("wandb", kWandb),
         object("csv_monitor", kCsvMonitor),
         object("comet", kComet),
         any("autotuning")}),
    {any("dstune"), integer("sequence_parallel_size", 1, kMostInt)});
constexpr Section kTop = read_as_is(kTopRules);

}  // namespace

const Section& deepspeed_section() { return kTop; }

}  // namespace dstune
