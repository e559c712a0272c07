#include "core/experiment/knobs.hpp"

#include <array>
#include <cstddef>
#include <stdexcept>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"

namespace dstune {
namespace {

/// Converts to the type of every member, so that the members of an aggregate can be counted.
struct Anything {
  template <class Value>
  operator Value();                 // NOLINT(google-explicit-constructor)
  operator std::optional<DType>();  // NOLINT(google-explicit-constructor)
  operator std::string();           // NOLINT(google-explicit-constructor)
};

template <class Config, class... Members>
consteval std::size_t count_members() {
  if constexpr (requires { Config{Members{}..., Anything{}}; }) {
    return count_members<Config, Members..., Anything>();
  }
  return sizeof...(Members);
}

consteval std::size_t count_members_in_table() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kKnobs.size(); ++i) {
    if (std::holds_alternative<std::monostate>(kKnobs[i].member)) continue;
    bool is_first = true;
    for (std::size_t j = 0; j < i; ++j) is_first &= kKnobs[j].member != kKnobs[i].member;
    if (is_first) ++count;
  }
  return count;
}

// These members do not come from a key of the JSON: version, behaviour, devices_per_node,
// unsupported.
constexpr std::size_t kMembersWithoutRow = 4;
static_assert(count_members_in_table() + kMembersWithoutRow ==
                  count_members<StepConfig>() - 2 + count_members<LossScaleConfig>() +
                      count_members<AioSettings>(),
              "each member of StepConfig, of its loss_scale and of its aio has a row in the table");

const json::object& section_of(const json::object& root, std::string_view pointer) {
  if (pointer.empty()) return root;
  if (pointer == "/bf16" && !root.contains("bf16")) pointer = "/bfloat16";
  const json::object* section = &root;
  for (const std::string& key : split(pointer.substr(1), '/')) {
    section = &fields::section(*section, key);
  }
  return *section;
}

std::optional<DType> dtype_of(std::string_view text, std::string_view key) {
  if (text == "fp32" || text == "float32") return DType::fp32;
  if (text == "fp16" || text == "float16") return DType::fp16;
  if (text == "bf16" || text == "bfloat16") return DType::bf16;
  fields::reject(key, "element type");
}

void read_field(const json::object& section, std::string_view key, bool& out) {
  fields::read(section, key, out);
}
void read_field(const json::object& section, std::string_view key, double& out) {
  fields::read(section, key, out);
}
void read_field(const json::object& section, std::string_view key, int& out) {
  fields::read_integer(section, key, out);
}
void read_field(const json::object& section, std::string_view key, std::int64_t& out) {
  fields::read_integer(section, key, out);
}
void read_field(const json::object& section, std::string_view key, Bytes& out) {
  auto value = static_cast<std::int64_t>(out);
  fields::read_integer(section, key, value);
  out = static_cast<Bytes>(value);
}
void read_field(const json::object& section, std::string_view key, std::string& out) {
  out = fields::read_text(section, key, out);
}
void read_field(const json::object& section, std::string_view key, std::optional<DType>& out) {
  const std::string text = fields::read_text(section, key, "");
  if (!text.empty()) out = dtype_of(text, key);
}
/// All other types of members have a reader of their own, so that this one is never called.
template <class Value>
void read_field(const json::object& /*section*/, std::string_view key, Value& /*out*/) {
  throw std::logic_error(concat(key, " has no reader"));
}

void read_knob(const json::object& section, const Knob& knob, StepConfig& config) {
  with_member(
      knob,
      [&](auto& member) {
        if (!knob.rule.alias.empty()) read_field(section, knob.rule.alias, member);
        read_field(section, knob.rule.key, member);
      },
      config);
}

void set(bool& member, double value) { member = value != 0; }
void set(double& member, double value) { member = value; }
template <class Value>
void set(Value& /*member*/, double /*value*/) {
  throw std::logic_error("the defaults of releases are numbers and booleans");
}

double default_number(const Knob& knob, const DeepSpeedVersion& version) {
  double value = 0;
  for (const DefaultSince& row : knob.defaults) {
    if (row.since <= version) value = row.value;
  }
  return value;
}

void read_from(const json::object& section, const Knob& knob, StepConfig& config) {
  if (!knob.defaults.empty()) {
    with_member(
        knob, [&](auto& member) { set(member, default_number(knob, config.version)); }, config);
  }
  (knob.reader != nullptr ? knob.reader : read_knob)(section, knob, config);
}

std::vector<std::string> read_texts(const json::object& object, std::string_view key) {
  const json::value* value = fields::find(object, key);
  if (value == nullptr) return {};
  if (!value->is_array()) fields::reject(key, "list of strings");
  std::vector<std::string> texts;
  for (const json::value& text : value->get_array()) {
    if (!text.is_string()) fields::reject(key, "list of strings");
    texts.emplace_back(text.get_string());
  }
  return texts;
}

}  // namespace

namespace knobs {
namespace {

OffloadDevice device_of(std::string_view text) {
  if (text == "none") return OffloadDevice::none;
  return text == "nvme" ? OffloadDevice::nvme : OffloadDevice::cpu;
}

}  // namespace

void read_fp16(const json::object& section, const Knob& knob, StepConfig& config) {
  if (fields::is_on(section, knob.rule.key)) config.dtype = DType::fp16;
}

void read_bf16(const json::object& section, const Knob& knob, StepConfig& config) {
  if (!fields::is_on(section, knob.rule.key)) return;
  if (config.dtype == DType::fp16) fields::reject("bf16.enabled", "choice beside fp16.enabled");
  config.dtype = DType::bf16;
}

void read_both(const json::object& section, const Knob& knob, StepConfig& config) {
  bool is_on = true;
  fields::read(section, knob.rule.key, is_on);
  config.timer_synchronizes = config.timer_synchronizes && is_on;
}

void read_sum(const json::object& section, const Knob& knob, StepConfig& config) {
  config.sum_gradients = fields::read_text(section, knob.rule.key, "mean") == "sum";
}

void read_optimizer(const json::object& section, const Knob& /*knob*/, StepConfig& config) {
  config.optimizer = read_optimizer_config(section, config.unsupported);
}

void read_checkpointing(const json::object& section, const Knob& knob, StepConfig& config) {
  const json::value* const value = fields::find(section, knob.rule.key);
  if (value != nullptr) config.checkpointing = activation_checkpointing_from_json(*value);
}

void read_boundary(const json::object& section, const Knob& knob, StepConfig& config) {
  if (!config.checkpointing.by_deepspeed) return;
  config.checkpoints_synchronize =
      config.checkpoints_synchronize || fields::is_on(section, knob.rule.key);
}

void read_overlap(const json::object& section, const Knob& knob, StepConfig& config) {
  config.overlap_comm = config.stage == 3;
  fields::read(section, knob.rule.key, config.overlap_comm);
}

void read_leaf_module(const json::object& section, const Knob& knob, StepConfig& config) {
  const json::object& leaf = fields::section(section, knob.rule.key);
  config.leaf_module = {read_texts(leaf, "classes"), read_texts(leaf, "names"),
                        read_texts(leaf, "name_suffixes"),
                        config.behaviour.has_default_leaf_classes && !leaf.contains("classes")};
}

void read_secondary(const json::object& section, const Knob& knob, StepConfig& config) {
  fields::read_integer(section, knob.rule.key, config.hpz_partition_size);
  config.hpz_partition_size = std::max(config.hpz_partition_size, 1);
}

// DeepSpeed takes its default, -1, and all other negative numbers for "off".
void read_shard(const json::object& section, const Knob& knob, StepConfig& config) {
  double shard = -1;
  fields::read(section, knob.rule.key, shard);
  if (shard > 0) fields::read_integer(section, knob.rule.key, config.mics_shard_size);
}

void read_offload(const json::object& section, const Knob& knob, StepConfig& config) {
  config.optimizer_device = device_of(fields::read_text(section, knob.rule.key, "none"));
  if (config.stage < 3 && config.swaps_optimizer()) config.optimizer_device = OffloadDevice::cpu;
}

void read_parameter_offload(const json::object& section, const Knob& knob, StepConfig& config) {
  if (config.stage < 3) return;
  config.parameter_device = device_of(fields::read_text(section, knob.rule.key, "none"));
}

}  // namespace knobs

std::string pointer_of(const Knob& knob) { return concat(knob.section, '/', knob.rule.key); }

bool is_read(const Knob& knob, const StepConfig& config) {
  return knob.stages.contains(config.stage) && (knob.read_if == nullptr || knob.read_if(config));
}

bool changes_step(const Knob& knob, const StepConfig& config) {
  return is_read(knob, config) && (knob.changes_step_if == nullptr || knob.changes_step_if(config));
}

bool is_same(const Knob& knob, const StepConfig& one, const StepConfig& other) {
  bool is_same = true;
  with_member(
      knob, [&](const auto& a, const auto& b) { is_same = a == b; }, one, other);
  return is_same;
}

void copy_knob(const Knob& knob, const StepConfig& from, StepConfig& to) {
  with_member(
      knob, [](const auto& value, auto& member) { member = value; }, from, to);
}

json::value default_of(const Knob& knob, const DeepSpeedVersion& version) {
  const double value = default_number(knob, version);
  return knob.rule.kind == ValueKind::boolean ? json::value(value != 0) : json::value(value);
}

void read_knobs(const json::object& ds_config, StepConfig& config) {
  std::string_view place;
  const json::object* section = &ds_config;
  for (const Knob& knob : kKnobs) {
    if (std::holds_alternative<std::monostate>(knob.member)) continue;
    if (knob.section != place) {
      place = knob.section;
      section = &section_of(ds_config, place);
    }
    read_from(*section, knob, config);
  }
}

void set_to_default(const Knob& knob, StepConfig& config) {
  copy_knob(knob, StepConfig(), config);
  read_from({}, knob, config);
}

bool does_nothing(std::string_view pointer, int stage) {
  for (const Knob& knob : kKnobs) {
    const std::string own = pointer_of(knob);
    if (pointer == own || pointer.starts_with(own + '/')) return !knob.stages.contains(stage);
  }
  return false;
}

}  // namespace dstune
