#include "core/experiment/outcome/outcome.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, 7> kFailureKinds = {
    "error", "not_finite", "timeout", "worker_lost", "quarantined", "device_lost", "wrong_sums"};

double real(const json::object& object, std::string_view key) {
  const json::value& value = object.at(key);
  // JSON has no NaN, so to_json_text() writes null for it.
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return value.to_number<double>();
}

template <class Integer>
Integer integer(const json::object& object, std::string_view key) {
  return object.at(key).to_number<Integer>();
}

// Earlier versions did not write this member.
Bytes later_bytes(const json::object& object, std::string_view key, Bytes otherwise = 0) {
  return object.contains(key) ? integer<Bytes>(object, key) : otherwise;
}

std::string text(const json::object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

json::object memory_to_json(const MemoryUse& use) {
  json::object object;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    object[name_of(static_cast<MemoryCategory>(i))] = use.bytes[i];
  }
  return object;
}

MemoryUse memory_from_json(const json::object& object) {
  MemoryUse use;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    use.bytes[i] = integer<Bytes>(object, name_of(static_cast<MemoryCategory>(i)));
  }
  return use;
}

using Phases = std::array<StepPhase, kMemoryCategories>;

json::object phases_to_json(const Phases& phases) {
  json::object object;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    object[name_of(static_cast<MemoryCategory>(i))] = name_of(phases[i]);
  }
  return object;
}

StepPhase phase_from_text(std::string_view name) {
  for (std::size_t i = 0; i < kStepPhases; ++i) {
    if (name == name_of(static_cast<StepPhase>(i))) return static_cast<StepPhase>(i);
  }
  throw std::invalid_argument(concat("unknown phase \"", name, "\""));
}

Phases phases_from_json(const json::object& object) {
  Phases phases{};
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    phases[i] = phase_from_text(text(object, name_of(static_cast<MemoryCategory>(i))));
  }
  return phases;
}

json::object to_json(const PeakHostMemory& peak) {
  json::object object = {{"pinned", peak.at_peak.pinned}, {"pageable", peak.at_peak.pageable}};
  if (peak.at_peak.locked > 0) object["locked"] = peak.at_peak.locked;
  object["held"] = peak.held;
  if (peak.drive > 0) object["drive"] = peak.drive;
  if (peak.pinned > 0) object["held_pinned"] = peak.pinned;
  return object;
}

/// @param value  null: nothing was offloaded, or the version is an earlier one
PeakHostMemory host_memory_from_json(const json::value* value) {
  if (value == nullptr) return {};
  const json::object& object = value->as_object();
  const auto if_any = [&](const char* key) {
    return object.contains(key) ? integer<Bytes>(object, key) : Bytes{0};
  };
  const HostUse at_peak{integer<Bytes>(object, "pinned"), integer<Bytes>(object, "pageable"),
                        if_any("locked")};
  return {at_peak, integer<Bytes>(object, "held"), if_any("drive"), if_any("held_pinned")};
}

json::object content(const Measured& measured) {
  const Summary& time = measured.step_time;
  json::object object = {
      {"status", "measured"},
      {"steps", measured.steps},
      {"step_time_s", {{"median", time.median}, {"min", time.min}, {"max", time.max}}},
      {"noise_percent", time.noise_percent},
      {"independent_steps", time.independent},
      {"forward_time_s", measured.forward_time},
      {"backward_time_s", measured.backward_time},
      {"optimizer_time_s", measured.optimizer_time},
      {"communication_time_s", measured.communication_time},
      {"samples_per_s", measured.samples_per_s},
      {"tokens_per_s", measured.tokens_per_s},
      {"flops_per_s_per_rank", measured.flops_per_s_per_rank},
      {"first_loss", measured.first_loss},
      {"last_loss", measured.last_loss},
      {"peak_memory_bytes", measured.peak_memory.allocated},
      {"peak_active_bytes", measured.peak_memory.active},
      {"peak_reserved_bytes", measured.peak_memory.reserved},
      {"peak_memory_phase", name_of(measured.peak_memory.phase)},
      {"peak_memory_bytes_by_category_at_peak", memory_to_json(measured.peak_memory.at_peak)},
      {"peak_memory_bytes_by_category", memory_to_json(measured.peak_memory.categories)},
      {"peak_memory_phase_by_category", phases_to_json(measured.peak_memory.phases)},
      {"ledger", measured.ledger.to_json()},
      {"setup_time_s", measured.setup_time},
      {"warmup_time_s", measured.warmup_time},
      {"measure_time_s", measured.measure_time},
      {"compute_time_s",
       json::array(measured.compute_times.begin(), measured.compute_times.end())}};
  if (measured.peak_host_memory != PeakHostMemory{}) {
    object["peak_host_memory_bytes"] = to_json(measured.peak_host_memory);
  }
  if (measured.micro_steps_run > 0) object["micro_steps_run"] = measured.micro_steps_run;
  if (!measured.core_use.empty()) object["core_use"] = to_json(measured.core_use);
  if (measured.device_use) object["device_use"] = to_json(*measured.device_use);
  if (!measured.network.empty()) object["network"] = measured.network;
  if (measured.device_peaks) object["device_peaks"] = to_json(*measured.device_peaks);
  if (measured.varying) object["varying_steps"] = to_json(*measured.varying);
  if (measured.machine_rates) object["machine_rates"] = to_json(*measured.machine_rates);
  if (const auto& slow = measured.slow_steps) {
    object["slow_steps"] = {{"count", slow->count}, {"longer_share", slow->longer}};
  }
  if (measured.machine_check) object["machine_check"] = to_json(*measured.machine_check);
  return object;
}

json::object content(const OutOfMemory& fault) {
  json::object object = {
      {"status", "out_of_memory"},           {"rank", fault.rank},
      {"category", name_of(fault.category)}, {"requested_bytes", fault.requested},
      {"in_use_bytes", fault.in_use},        {"limit_bytes", fault.limit},
      {"reserved_bytes", fault.reserved}};
  if (!fault.refusal.empty()) object["refusal"] = fault.refusal;
  if (fault.tier != Tier::device) object["tier"] = name_of(fault.tier);
  return object;
}

json::object content(const Failed& failed) {
  return {{"status", "failed"},
          {"kind", kFailureKinds[static_cast<std::size_t>(failed.kind)]},
          {"reason", failed.reason}};
}

json::object content(const Skipped& skipped) {
  return {{"status", "skipped"}, {"reason", skipped.reason}};
}

Summary step_time_from_json(const json::object& object) {
  const auto& time = object.at("step_time_s").as_object();
  return {real(time, "median"), real(time, "min"), real(time, "max"), real(object, "noise_percent"),
          object.contains("independent_steps") ? real(object, "independent_steps") : 0};
}

std::optional<SlowPart> slow_steps_from_json(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  const json::object& part = value->as_object();
  return SlowPart{integer<int>(part, "count"), real(part, "longer_share")};
}

Measured measured_from_json(const json::object& object) {
  Measured measured;
  measured.steps = integer<int>(object, "steps");
  measured.step_time = step_time_from_json(object);
  measured.forward_time = real(object, "forward_time_s");
  measured.backward_time = real(object, "backward_time_s");
  measured.optimizer_time = real(object, "optimizer_time_s");
  measured.communication_time = real(object, "communication_time_s");
  measured.samples_per_s = real(object, "samples_per_s");
  measured.tokens_per_s = real(object, "tokens_per_s");
  measured.flops_per_s_per_rank = real(object, "flops_per_s_per_rank");
  measured.first_loss = real(object, "first_loss");
  if (const auto* run = object.if_contains("micro_steps_run")) {
    measured.micro_steps_run = run->to_number<int>();
  }
  measured.last_loss = real(object, "last_loss");
  measured.peak_memory.allocated = integer<Bytes>(object, "peak_memory_bytes");
  // What earlier versions called the peak was what is active now.
  measured.peak_memory.active =
      later_bytes(object, "peak_active_bytes", measured.peak_memory.allocated);
  measured.peak_memory.reserved = later_bytes(object, "peak_reserved_bytes");
  measured.peak_memory.at_peak =
      memory_from_json(object.at("peak_memory_bytes_by_category_at_peak").as_object());
  measured.peak_memory.categories =
      memory_from_json(object.at("peak_memory_bytes_by_category").as_object());
  measured.peak_memory.phase = phase_from_text(text(object, "peak_memory_phase"));
  measured.peak_memory.phases =
      phases_from_json(object.at("peak_memory_phase_by_category").as_object());
  measured.ledger = Ledger::from_json(object.at("ledger").as_object());
  measured.setup_time = real(object, "setup_time_s");
  measured.warmup_time = real(object, "warmup_time_s");
  measured.measure_time = real(object, "measure_time_s");
  if (const auto* times = object.if_contains("compute_time_s")) {
    for (const auto& time : times->as_array()) {
      measured.compute_times.push_back(time.to_number<double>());
    }
  }
  measured.peak_host_memory = host_memory_from_json(object.if_contains("peak_host_memory_bytes"));
  if (const auto* uses = object.if_contains("core_use")) {
    measured.core_use = core_uses_from_json(uses->as_array());
  }
  if (const auto* use = object.if_contains("device_use")) {
    measured.device_use = device_use_from_json(use->as_object());
  }
  if (object.contains("network")) measured.network = text(object, "network");
  if (const auto* peaks = object.if_contains("device_peaks")) {
    measured.device_peaks = device_peaks_from_json(peaks->as_object());
  }
  if (const auto* varying = object.if_contains("varying_steps")) {
    measured.varying = varying_steps_from_json(varying->as_object());
  }
  if (const auto* rates = object.if_contains("machine_rates")) {
    measured.machine_rates = machine_rates_from_json(rates->as_object());
  }
  measured.slow_steps = slow_steps_from_json(object.if_contains("slow_steps"));
  if (const auto* check = object.if_contains("machine_check")) {
    measured.machine_check = machine_check_from_json(check->as_object());
  }
  return measured;
}

Tier tier_from_text(const std::string& name) {
  const auto tier = tier_from(name);
  if (!tier) throw std::invalid_argument(concat("unknown tier \"", name, "\""));
  return *tier;
}

OutOfMemory out_of_memory_from_json(const json::object& object) {
  const std::string category = text(object, "category");
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    if (category != name_of(static_cast<MemoryCategory>(i))) continue;
    return {integer<int>(object, "rank"),
            static_cast<MemoryCategory>(i),
            integer<Bytes>(object, "requested_bytes"),
            integer<Bytes>(object, "in_use_bytes"),
            integer<Bytes>(object, "limit_bytes"),
            later_bytes(object, "reserved_bytes"),
            object.contains("refusal") ? text(object, "refusal") : "",
            object.contains("tier") ? tier_from_text(text(object, "tier")) : Tier::device};
  }
  throw std::invalid_argument(concat("unknown memory category \"", category, "\""));
}

Failed failed_from_json(const json::object& object) {
  const std::string kind = text(object, "kind");
  for (std::size_t i = 0; i < kFailureKinds.size(); ++i) {
    if (kind == kFailureKinds[i]) {
      return {static_cast<FailureKind>(i), text(object, "reason")};
    }
  }
  throw std::invalid_argument(concat("unknown kind of failure \"", kind, "\""));
}

Outcome read_outcome(const json::object& object) {
  const std::string status = text(object, "status");
  if (status == "measured") return measured_from_json(object);
  if (status == "out_of_memory") return out_of_memory_from_json(object);
  if (status == "failed") return failed_from_json(object);
  if (status == "skipped") return Skipped{text(object, "reason")};
  throw std::invalid_argument(concat("unknown status \"", status, "\""));
}

}  // namespace

Seconds typical_step_time(const Measured& measured) {
  return measured.varying ? measured.varying->mean_step_time : measured.step_time.median;
}

namespace {

double independent_steps(const Measured& measured) {
  const double known = measured.step_time.independent;
  return known > 0 ? std::min(known, static_cast<double>(measured.steps)) : measured.steps;
}

}  // namespace

double relative_error(const Measured& measured) {
  const double spread = measured.step_time.noise_percent / 100;
  const double error = error_of_mean(spread, measured.steps, independent_steps(measured));
  return measured.varying ? error : kErrorOfMedian * error;
}

double relative_error(const std::vector<const Measured*>& runs) {
  double squares = 0;
  for (const Measured* run : runs) squares += relative_error(*run) * relative_error(*run);
  return runs.empty() ? 0 : std::sqrt(squares / static_cast<double>(runs.size()));
}

std::optional<double> relative_interval(const Measured& measured) {
  if (measured.steps < 2) return std::nullopt;
  const int freedom = std::max(static_cast<int>(independent_steps(measured)) - 1, 1);
  return student_quantile(0.05, freedom) * relative_error(measured);
}

// What may be locked is a setting, and the same the next time.
bool is_machines(const OutOfMemory& fault) {
  if (fault.tier == Tier::locked) return false;
  if (!fault.refusal.empty()) return true;
  // Earlier versions wrote such a fault without a refusal.
  if (fault.requested == 0) return fault.limit > 0;
  return fault.requested <= fault.limit &&
         std::max(fault.in_use, fault.reserved) <= fault.limit - fault.requested;
}

bool may_be_tried_again(const Outcome& outcome) {
  const auto* memory = std::get_if<OutOfMemory>(&outcome);
  return std::holds_alternative<Failed>(outcome) || (memory != nullptr && is_machines(*memory));
}

json::object to_json(const Outcome& outcome) {
  return std::visit([](const auto& alternative) { return content(alternative); }, outcome);
}

Outcome outcome_from_json(const json::object& object) {
  try {
    return read_outcome(object);
  } catch (const std::exception& fault) {
    throw std::invalid_argument(concat("outcome_from_json: ", fault.what()));
  }
}

}  // namespace dstune
