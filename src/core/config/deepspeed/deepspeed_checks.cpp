#include "core/config/deepspeed/deepspeed_checks.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/config/deepspeed/optimizer_checks.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

const json::object* section_of(const json::object& parent, std::string_view key) {
  const auto* found = parent.if_contains(key);
  return found == nullptr ? nullptr : found->if_object();
}

bool is_true(const json::object* section, std::string_view key) {
  const auto* value = section == nullptr ? nullptr : section->if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

void check_nvme(const json::object& zero, std::string_view key, Problems& problems) {
  const auto* const offload = section_of(zero, key);
  if (offload == nullptr) return;
  const auto* const device = offload->if_contains("device");
  if (device == nullptr || *device != "nvme") return;
  const auto* const path = offload->if_contains("nvme_path");
  if (path != nullptr && path->is_string()) return;
  problems.add(child(child("/zero_optimization", key), "nvme_path"),
               "is missing; device \"nvme\" needs a folder");
}

// DeepSpeed refuses an old key beside its new one, whatever the old one says.
void check_deprecated(const json::object& zero, Problems& problems) {
  for (const auto& [old_key, new_key] : deepspeed_table::kDeprecatedInZero) {
    if (!zero.contains(old_key) || !zero.contains(new_key)) continue;
    problems.add(child("/zero_optimization", old_key),
                 concat("is the old form of ", in_quotes(new_key), "; keep one of them"));
  }
}

// Offloading is asked for by today's key or the old one; a list of the search space does not count.
bool offloads(const json::object& zero, std::string_view key, std::string_view old_key) {
  if (is_true(&zero, old_key)) return true;
  const auto* const offload = section_of(zero, key);
  const auto* const device = offload == nullptr ? nullptr : offload->if_contains("device");
  return device != nullptr && device->is_string() && *device != "none";
}

bool is_zero_or_absent(const json::object& section, std::string_view key) {
  const auto* const value = section.if_contains(key);
  return value == nullptr || (value->is_number() && value->to_number<double>() == 0);
}

void check_loss_scale(const json::object& fp16, Problems& problems) {
  const bool is_dynamic = is_true(&fp16, "enabled") && is_zero_or_absent(fp16, "loss_scale");
  if (!is_dynamic || !fp16.contains("min_loss_scale")) return;
  if (!is_zero_or_absent(fp16, "min_loss_scale")) return;
  problems.add("/fp16/min_loss_scale",
               "is 0; accepted: an integer >= 1 where the loss scale is dynamic");
}

void add_offload(json::object& zero, const json::object& old, const char* old_key,
                 const char* new_key) {
  if (!is_true(&old, old_key)) return;
  json::object offload{{"device", "cpu"}};
  const auto* const pin = old.if_contains("cpu_offload_use_pin_memory");
  if (pin != nullptr && pin->is_bool()) offload["pin_memory"] = *pin;
  zero[new_key] = offload;
}

bool is_on_drive(const json::object* offload) {
  const auto* const device = offload == nullptr ? nullptr : offload->if_contains("device");
  return device != nullptr && *device == "nvme";
}

void warn_of_idle_offload(const json::object& zero, const std::vector<int>& stages,
                          Problems& problems) {
  const auto has = [&](const auto& condition) { return std::ranges::any_of(stages, condition); };
  if (offloads(zero, "offload_param", "cpu_offload_param") &&
      has([](int stage) { return stage < 3; })) {
    problems.warn("/zero_optimization/offload_param",
                  "has no effect below stage 3: DeepSpeed ignores it there");
  }
  if (is_on_drive(section_of(zero, "offload_optimizer")) &&
      has([](int stage) { return stage == 1 || stage == 2; })) {
    problems.warn("/zero_optimization/offload_optimizer/device",
                  "is \"nvme\", which is the same as \"cpu\" in stages 1 and 2: DeepSpeed writes "
                  "nothing to nvme_path there");
  }
  if (offloads(zero, "offload_optimizer", "cpu_offload") &&
      has([](int stage) { return stage == 0; })) {
    problems.warn("/zero_optimization/offload_optimizer",
                  "rules out stage 0: there DeepSpeed's CPU optimizer gets parameters on the "
                  "device, and crashes");
  }
}

void warn_of_fast_init(const json::object& zero, const std::vector<int>& stages,
                       Problems& problems) {
  if (std::ranges::find(stages, 3) == stages.end()) return;
  const auto* const optimizer = section_of(zero, "offload_optimizer");
  if (!is_on_drive(optimizer) || !is_on_drive(section_of(zero, "offload_param"))) return;
  if (!is_true(optimizer, "fast_init")) return;
  problems.warn(
      "/zero_optimization/offload_optimizer/fast_init",
      "is true: DeepSpeed then reads parameters to addresses and in sizes that drives "
      "refuse, does not notice it, and trains from wrong weights; it only saves time at the start");
}

}  // namespace

void check_relations(const json::object& deepspeed, Problems& problems) {
  const auto* const fp16 = section_of(deepspeed, "fp16");
  const auto* const bf16 = section_of(deepspeed, "bf16");
  if (is_true(fp16, "enabled") && is_true(bf16, "enabled")) {
    problems.add("/bf16/enabled", "is true and so is /fp16/enabled; accepted: one of the two");
  }
  if (fp16 != nullptr) check_loss_scale(*fp16, problems);
  if (is_true(section_of(deepspeed, "comms_logger"), "enabled")) {
    problems.warn("/comms_logger",
                  "is on: DeepSpeed then waits for the device after every collective, which is not "
                  "measured here; the optimum is that of training without it");
  }
  const auto* const optimizer = section_of(deepspeed, "optimizer");
  if (optimizer != nullptr) check_optimizer(*optimizer, problems);
  const auto* const zero = section_of(deepspeed, "zero_optimization");
  if (zero == nullptr) return;
  check_nvme(*zero, "offload_optimizer", problems);
  check_nvme(*zero, "offload_param", problems);
  check_deprecated(*zero, problems);
}

void warn_of_offload(const json::object& deepspeed, const std::vector<int>& stages,
                     Problems& problems) {
  const auto* const zero = section_of(deepspeed, "zero_optimization");
  if (zero == nullptr) return;
  warn_of_idle_offload(*zero, stages, problems);
  warn_of_fast_init(*zero, stages, problems);
}

json::object without_keys(const json::object& object, const std::vector<std::string_view>& keys) {
  json::object rest;
  for (const auto& member : object) {
    const std::string_view key(member.key());
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) rest[member.key()] = member.value();
  }
  return rest;
}

json::object without_deprecated_offload(const json::object& zero) {
  json::object modern =
      without_keys(zero, {"cpu_offload", "cpu_offload_param", "cpu_offload_use_pin_memory"});
  add_offload(modern, zero, "cpu_offload", "offload_optimizer");
  add_offload(modern, zero, "cpu_offload_param", "offload_param");
  return modern;
}

}  // namespace dstune
