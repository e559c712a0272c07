#include "core/experiment/experiment.hpp"

#include <stdexcept>

#include "core/base/text.hpp"
#include "core/device/memory/host_memory.hpp"
#include "core/device/memory/memory_budget.hpp"

namespace dstune {

namespace {

json::object settings_to_json(const RunSettings& settings) {
  json::object object = {{"model", to_json(settings.model)},
                         {"sequence_length", settings.sequence_length},
                         {"memory_limit_bytes", settings.memory_limit},
                         {"allocator", name_of(settings.allocator)},
                         {"backend", settings.backend},
                         {"threads_per_rank", settings.threads_per_rank},
                         {"devices_per_node", settings.devices_per_node},
                         {"warmup_steps", settings.warmup_steps},
                         {"measure_steps", settings.measure_steps},
                         {"experiment_timeout_s", settings.experiment_timeout},
                         {"seed", settings.seed},
                         {"host_overhead_s", to_json(settings.host_overhead)}};
  // Settings at their usual values are left out, because older journals do not have them.
  if (settings.attention != AttentionKind::sdpa) object["attention"] = name_of(settings.attention);
  if (!settings.is_one_memory()) object["host_memory_limit_bytes"] = settings.host_memory_limit;
  if (settings.pinned_limit > 0) object["pinned_limit_bytes"] = settings.pinned_limit;
  if (settings.drive_limit > 0) object["drive_limit_bytes"] = settings.drive_limit;
  if (settings.share_gpu) object["share_gpu"] = true;
  if (settings.product_workspace != ProductWorkspace{}) {
    object["product_workspace"] = to_json(settings.product_workspace);
  }
  if (settings.least_warmup_time > 0) object["least_warmup_s"] = settings.least_warmup_time;
  if (settings.least_measure_time > 0) object["least_measure_s"] = settings.least_measure_time;
  if (settings.lengths.varies()) object["lengths"] = to_json(settings.lengths);
  if (settings.whole_steps) object["whole_steps"] = true;
  if (settings.loss.kind != LossKind::plain) object["loss"] = name_of(settings.loss.kind);
  if (settings.loss.keep_logits) object["keep_logits"] = true;
  return object;
}

Seconds seconds_or_none(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value == nullptr ? 0 : value->to_number<double>();
}

Bytes bytes_or_none(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value == nullptr ? 0 : value->to_number<Bytes>();
}

bool is_true(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->as_bool();
}

LossSettings loss_from_json(const json::object& object) {
  LossSettings loss{.keep_logits = is_true(object, "keep_logits")};
  if (const auto* name = object.if_contains("loss")) {
    const auto kind = loss_from(std::string_view(name->as_string()));
    if (!kind) throw std::invalid_argument("unknown loss");
    loss.kind = *kind;
  }
  return loss;
}

// Journals of earlier versions do not name an allocator, because those versions counted exactly.
AllocatorModel allocator_from_json(const json::object& object) {
  const auto* name = object.if_contains("allocator");
  if (name == nullptr) return AllocatorModel::exact;
  const auto allocator = allocator_from(std::string_view(name->as_string()));
  if (!allocator) throw std::invalid_argument("unknown allocator");
  return *allocator;
}

AttentionKind attention_from_json(const json::object& object) {
  const auto* name = object.if_contains("attention");
  if (name == nullptr) return AttentionKind::sdpa;
  const auto attention = attention_kind_from(std::string_view(name->as_string()));
  if (!attention) throw std::invalid_argument("unknown attention");
  return *attention;
}

RunSettings settings_from_json(const json::object& object) {
  RunSettings settings;
  settings.model = model_spec_from_json(object.at("model").as_object());
  settings.sequence_length = object.at("sequence_length").to_number<std::int64_t>();
  if (const auto* lengths = object.if_contains("lengths")) {
    settings.lengths = length_settings_from_json(lengths->as_object());
  }
  settings.attention = attention_from_json(object);
  settings.memory_limit = object.at("memory_limit_bytes").to_number<Bytes>();
  settings.host_memory_limit = bytes_or_none(object, "host_memory_limit_bytes");
  settings.pinned_limit = bytes_or_none(object, "pinned_limit_bytes");
  settings.drive_limit = bytes_or_none(object, "drive_limit_bytes");
  settings.allocator = allocator_from_json(object);
  if (const auto* workspace = object.if_contains("product_workspace")) {
    settings.product_workspace = product_workspace_from_json(workspace->as_object());
  }
  settings.backend = std::string(object.at("backend").as_string());
  settings.threads_per_rank = object.at("threads_per_rank").to_number<int>();
  settings.devices_per_node = object.at("devices_per_node").to_number<int>();
  settings.warmup_steps = object.at("warmup_steps").to_number<int>();
  settings.measure_steps = object.at("measure_steps").to_number<int>();
  settings.least_warmup_time = seconds_or_none(object, "least_warmup_s");
  settings.least_measure_time = seconds_or_none(object, "least_measure_s");
  settings.experiment_timeout = object.at("experiment_timeout_s").to_number<double>();
  settings.seed = object.at("seed").to_number<std::uint64_t>();
  settings.host_overhead = host_overhead_from_json(object.at("host_overhead_s").as_object());
  settings.whole_steps = is_true(object, "whole_steps");
  settings.share_gpu = is_true(object, "share_gpu");
  settings.loss = loss_from_json(object);
  return settings;
}

json::object spent_by(HostOverhead overhead) {
  overhead.origin.clear();
  overhead.uncertainty = {};
  overhead.spread_factor = 1;
  for (LibraryRate& rate : overhead.collectives) {
    rate.latency_uncertainty = rate.bus_bytes_per_s_uncertainty = 0;
    rate.large_bus_bytes_per_s_uncertainty = 0;
  }
  return to_json(overhead);
}

}  // namespace

HostLimits RunSettings::host_limits() const {
  HostLimits limits;
  if (!is_one_memory()) limits.held = host_memory_limit;
  if (pinned_limit > 0) limits.pinned = pinned_limit;
  if (drive_limit > 0) limits.drive = drive_limit;
  return limits;
}

RunSettings RunSettings::without_limits() const {
  RunSettings settings = *this;
  settings.memory_limit = kUnlimited;
  if (!is_one_memory()) settings.host_memory_limit = kNoLimit;
  settings.pinned_limit = settings.drive_limit = 0;
  return settings;
}

std::string Experiment::key() const {
  json::object identity = settings_to_json(settings);
  identity.erase("experiment_timeout_s");
  if (!ds_config.step().offloads()) {
    for (const auto* limit :
         {"host_memory_limit_bytes", "pinned_limit_bytes", "drive_limit_bytes"}) {
      identity.erase(limit);
    }
  }
  if (!ds_config.step().uses_drives()) identity.erase("drive_limit_bytes");
  // The model's name is a label: a preset and a file with the same dimensions are one model. A
  // profile of host overhead is identified by the numbers that a step spends.
  identity["model"].as_object().erase("name");
  identity["host_overhead_s"] = spent_by(settings.host_overhead);
  identity["ds_config"] = ds_config.json();
  identity["ranks"] = ranks;
  identity["repetition"] = repetition;
  if (measures_machine) identity["measures_machine"] = true;
  if (is_reference) identity["is_reference"] = true;
  return sorted_json_text(identity);
}

json::object to_json(const Experiment& experiment) {
  json::object object = {{"name", experiment.name},
                         {"ds_config", experiment.ds_config.json()},
                         {"ranks", experiment.ranks},
                         {"settings", settings_to_json(experiment.settings)},
                         {"repetition", experiment.repetition}};
  // Older journals do not have these members.
  if (experiment.measures_machine) object["measures_machine"] = true;
  if (experiment.is_reference) object["is_reference"] = true;
  if (experiment.give_up_above > 0) object["give_up_above_s"] = experiment.give_up_above;
  return object;
}

Experiment experiment_from_json(const json::object& object) {
  try {
    const json::value* give_up = object.if_contains("give_up_above_s");
    return {std::string(object.at("name").as_string()),
            object.at("ds_config").as_object(),
            object.at("ranks").to_number<int>(),
            settings_from_json(object.at("settings").as_object()),
            object.at("repetition").to_number<int>(),
            is_true(object, "measures_machine"),
            is_true(object, "is_reference"),
            give_up == nullptr ? 0 : give_up->to_number<double>()};
  } catch (const std::exception& fault) {
    throw std::invalid_argument(concat("experiment_from_json: ", fault.what()));
  }
}

}  // namespace dstune
