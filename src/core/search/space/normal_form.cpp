#include "core/search/space/normal_form.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

// The numbers with which an update computes do not change the step, so that they get one value.
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

/// Writes the bytes of values one after the other.
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
  template <class Value>
  void append(const std::optional<Value>& value) {
    add(value.has_value(), value.value_or(Value{}));
  }
  void append(const std::string& text) {
    append(text.size());
    key_ += text;
  }
  void append(const std::vector<std::string>& texts) {
    append(texts.size());
    for (const std::string& text : texts) append(text);
  }
  void append(const LeafModuleConfig& leaf) {
    const auto& [classes, names, name_suffixes, default_classes] = leaf;
    add(classes, names, name_suffixes, default_classes);
  }
  void append(const ActivationCheckpointing& checkpointing) {
    const auto& [unit, count, reentrant, by_deepspeed] = checkpointing;
    add(unit, count, reentrant, by_deepspeed);
  }
  void append(const OptimizerConfig& optimizer) {
    const auto& [client, lr, weight_decay, settings] = optimizer;
    add(client, lr, weight_decay, settings.index());
    std::visit([&](const auto& own) { append_settings(own); }, settings);
  }
  void append_settings(const AdamSettings& adam) {
    const auto& [beta1, beta2, epsilon, adam_w, bias_correction, torch] = adam;
    add(beta1, beta2, epsilon, adam_w, bias_correction, torch);
  }
  void append_settings(const SgdSettings& sgd) {
    const auto& [momentum, dampening, nesterov] = sgd;
    add(momentum, dampening, nesterov);
  }
  // All other settings have been set to one value by settle_optimizer(), so that nothing is
  // appended.
  template <class Settings>
  void append_settings(const Settings& /*settings*/) {}

  std::string key_;
};

}  // namespace

NormalForm::NormalForm(const ModelParameters& parameters, int ranks) : ranks_(ranks) {
  // Forward and backward, and both again as parts of a leaf module.
  constexpr std::int64_t kPasses = 4;
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

StepConfig NormalForm::of(const StepConfig& given) const {
  const StepConfig usual;
  StepConfig config = given;
  for (const Knob& knob : kKnobs) {
    if (!changes_step(knob, given)) copy_knob(knob, usual, config);
  }
  settle_optimizer(config.optimizer);
  config.communication_dtype = config.message_dtype();
  config.grad_accum_dtype = config.accumulation_dtype();
  config.gradient_clipping = config.gradient_clipping > 0 ? 1 : 0;
  if (!config.contiguous_gradients) {
    config.reduce_bucket_size = std::min(config.reduce_bucket_size, total_);
  }
  if (config.stage == 3) settle_stage_3(config);
  return config;
}

void NormalForm::settle_stage_3(StepConfig& config) const {
  config.hpz_partition_size = std::min(config.hpz_partition_size, ranks_);
  const std::int64_t shard = config.mics_shard_size > 0 ? shard_of(config.mics_shard_size) : shard_;
  config.sub_group_size = std::clamp<std::int64_t>(config.sub_group_size, 1, shard);
  // A client's optimizer may have two groups of parameters, and so two sub-groups at least.
  const bool is_one_sub_group = config.sub_group_size == shard && !config.optimizer.client;
  if (is_one_sub_group && config.sub_groups_on_device(1) == 0) config.offload_ratio = 1;
  const auto above =
      std::upper_bound(numels_.begin(), numels_.end(), config.param_persistence_threshold);
  config.param_persistence_threshold = above == numels_.begin() ? 0 : *std::prev(above);
  config.model_persistence_threshold = std::min(config.model_persistence_threshold, total_);
  settle_gathers(config);
}

void NormalForm::settle_gathers(StepConfig& config) const {
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
  for (const Knob& knob : kKnobs) {
    with_member(
        knob, [&](const auto& member) { key.add(member); }, form);
  }
  key.add(form.devices_per_node);
  return key.take();
}

}  // namespace dstune
