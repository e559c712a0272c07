#include "core/search/space/normal_form.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace dstune {
namespace {

// Numbers that an update computes with, whatever they are.
void settle_optimizer(OptimizerConfig& optimizer) {
  optimizer.lr = 0;
  const auto settle = [](auto& settings) {
    using Settings = std::decay_t<decltype(settings)>;
    if constexpr (!std::is_same_v<Settings, SgdSettings>) settings = Settings{};
  };
  const auto* const adam = std::get_if<AdamSettings>(&optimizer.settings);
  const bool is_torchs = adam != nullptr && adam->torch;
  std::visit(settle, optimizer.settings);
  if (is_torchs) std::get<AdamSettings>(optimizer.settings).torch = true;
}

void settle_precision(StepConfig& config) {
  config.loss_scale = {};
  config.communication_dtype = config.message_dtype();
  config.grad_accum_dtype = config.stage == 2 ? config.dtype : config.accumulation_dtype();
  const bool is_bf16_optimizer = config.uses_bf16_optimizer();
  if (!is_bf16_optimizer) config.immediate_grad_update = false;
  const bool may_check =
      config.dtype == DType::bf16 && !is_bf16_optimizer && (config.stage == 1 || config.stage == 2);
  if (!may_check) config.check_grad_overflow = true;
}

// Of ZeRO's knobs nothing but the stage.
void settle_all_of_zero(StepConfig& config) {
  const StepConfig usual;
  config.reduce_bucket_size = usual.reduce_bucket_size;
  config.contiguous_gradients = usual.contiguous_gradients;
  config.reduce_scatter = usual.reduce_scatter;
  config.overlap_comm = usual.overlap_comm;
  config.round_robin_gradients = usual.round_robin_gradients;
  config.use_multi_rank_bucket_allreduce = usual.use_multi_rank_bucket_allreduce;
}

void settle_knobs_of_stage_3(StepConfig& config) {
  const StepConfig usual;
  config.sub_group_size = usual.sub_group_size;
  config.prefetch_bucket_size = usual.prefetch_bucket_size;
  config.param_persistence_threshold = usual.param_persistence_threshold;
  config.max_live_parameters = usual.max_live_parameters;
  config.max_reuse_distance = usual.max_reuse_distance;
  config.model_persistence_threshold = usual.model_persistence_threshold;
  config.module_granularity_threshold = usual.module_granularity_threshold;
  config.leaf_module = {};
  config.allgather_sequential = false;
  config.use_all_reduce_for_fetch_params = false;
  config.quantized_weights = false;
  config.quantized_gradients = false;
  config.hpz_partition_size = 1;
  config.mics_shard_size = 0;
}

// Without a bucket gradients are summed up as they come.
void settle_reduction(StepConfig& config, std::int64_t total) {
  if (!config.contiguous_gradients) {
    config.reduce_scatter = true;
    config.reduce_bucket_size = std::min(config.reduce_bucket_size, total);
  }
  const bool cuts_buckets =
      config.stage < 3 && config.contiguous_gradients && config.reduce_scatter;
  if (!cuts_buckets) config.use_multi_rank_bucket_allreduce = true;
  if (config.stage == 3) config.round_robin_gradients = false;
}

/// Bytes of values, one after the other.
class KeyWriter {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (append(values), ...);
  }
  std::string take() { return std::move(key_); }

 private:
  template <class Value>
  void append(const Value& value) {
    static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void append(const std::vector<std::string>& texts) {
    append(texts.size());
    for (const std::string& text : texts) {
      append(text.size());
      key_ += text;
    }
  }

  std::string key_;
};

void add_optimizer(KeyWriter& key, const OptimizerConfig& optimizer) {
  key.add(optimizer.client, optimizer.weight_decay, optimizer.settings.index());
  if (const auto* const sgd = std::get_if<SgdSettings>(&optimizer.settings)) {
    key.add(sgd->momentum, sgd->dampening, sgd->nesterov);
  } else if (const auto* const adam = std::get_if<AdamSettings>(&optimizer.settings)) {
    key.add(adam->torch);
  }
}

}  // namespace

NormalForm::NormalForm(const ModelParameters& parameters, int ranks) : ranks_(ranks) {
  constexpr std::int64_t kPasses = 4;  // forwards and backwards, and again as parts of a leaf
  for (const ParameterSpec& tensor : parameters.tensors) {
    numels_.push_back(tensor.numel());
    total_ += tensor.numel();
  }
  for (const ModuleSpec& module : parameters.modules) {
    for (const std::size_t tensor : module.parameters) trace_ += kPasses * numels_[tensor];
  }
  trace_ += kPasses * total_;
  std::sort(numels_.begin(), numels_.end());
  shard_ = shard_of(ranks);
}

std::int64_t NormalForm::shard_of(int shards) const {
  std::int64_t shard = 0;
  for (const std::int64_t numel : numels_) shard += (numel + shards - 1) / shards;
  return shard;
}

StepConfig NormalForm::of(StepConfig config) const {
  settle_optimizer(config.optimizer);
  settle_precision(config);
  const bool may_not_clip = config.stage == 0 || config.uses_bf16_optimizer();
  config.gradient_clipping = may_not_clip && !(config.gradient_clipping > 0) ? 0 : 1;
  if (config.stage < 3) settle_knobs_of_stage_3(config);
  if (config.stage == 0 || config.uses_bf16_optimizer()) {
    settle_all_of_zero(config);
    return config;
  }
  settle_reduction(config, total_);
  if (config.stage == 3) settle_stage_3(config);
  return config;
}

void NormalForm::settle_stage_3(StepConfig& config) const {
  config.hpz_partition_size = std::min(config.hpz_partition_size, ranks_);
  const std::int64_t shard = config.mics_shard_size > 0 ? shard_of(config.mics_shard_size) : shard_;
  config.sub_group_size = std::clamp<std::int64_t>(config.sub_group_size, 1, shard);
  const auto above =
      std::upper_bound(numels_.begin(), numels_.end(), config.param_persistence_threshold);
  config.param_persistence_threshold = above == numels_.begin() ? 0 : *std::prev(above);
  config.model_persistence_threshold = std::min(config.model_persistence_threshold, total_);
  settle_gathers(config);
}

void NormalForm::settle_gathers(StepConfig& config) const {
  const bool chooses_by_itself =
      config.allgather_sequential || config.mics_shard_size > 0 || config.quantized_weights;
  if (chooses_by_itself) config.use_all_reduce_for_fetch_params = false;
  config.prefetch_bucket_size =
      config.allgather_sequential ? 1 : std::min(config.prefetch_bucket_size, total_);
  config.max_live_parameters =
      config.prefetch_bucket_size == 0
          ? 0
          : std::min(config.max_live_parameters, total_ + config.prefetch_bucket_size);
  const std::int64_t passes = config.checkpointing.is_on() ? 2 : 1;
  config.max_reuse_distance = std::min(config.max_reuse_distance, passes * trace_);
}

std::string NormalForm::key(const StepConfig& config) const {
  const StepConfig form = of(config);
  KeyWriter key;
  key.add(form.stage, form.micro_batch, form.accumulation_steps, form.dtype,
          form.check_grad_overflow, form.timer_synchronizes, *form.communication_dtype,
          *form.grad_accum_dtype, form.immediate_grad_update, form.prescale_gradients,
          form.gradient_predivide_factor, form.sum_gradients, form.gradient_clipping);
  add_optimizer(key, form.optimizer);
  key.add(form.reduce_bucket_size, form.contiguous_gradients, form.reduce_scatter,
          form.overlap_comm, form.round_robin_gradients, form.use_multi_rank_bucket_allreduce,
          form.sub_group_size, form.prefetch_bucket_size, form.param_persistence_threshold,
          form.max_live_parameters, form.max_reuse_distance, form.model_persistence_threshold,
          form.module_granularity_threshold, form.leaf_module.default_classes,
          form.leaf_module.classes, form.leaf_module.names, form.leaf_module.name_suffixes,
          form.allgather_sequential, form.use_all_reduce_for_fetch_params, form.quantized_weights,
          form.quantized_gradients, form.hpz_partition_size, form.mics_shard_size,
          form.devices_per_node);
  key.add(form.checkpointing.unit, form.checkpointing.count, form.checkpointing.reentrant,
          form.checkpointing.by_deepspeed, form.checkpoints_synchronize);
  return key.take();
}

}  // namespace dstune
