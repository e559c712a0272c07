#include "core/config/overrides.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_checks.hpp"
#include "core/input/coercions.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

/// Other names that DeepSpeed takes for a key.
struct Synonym {
  std::string_view name;
  std::string_view other;
};

constexpr std::array<Synonym, 4> kSynonyms = {{{"offload_optimizer", "cpu_offload"},
                                               {"offload_param", "cpu_offload_params"},
                                               {"offload_param", "cpu_offload_param"},
                                               {"bf16", "bfloat16"}}};

bool is_same_key(std::string_view asked, std::string_view key) {
  constexpr std::string_view kStage3 = "stage3_";
  if (asked == key || asked == concat(kStage3, key) || concat(kStage3, asked) == key) return true;
  return std::any_of(kSynonyms.begin(), kSynonyms.end(), [&](const Synonym& synonym) {
    return asked == synonym.name && key == synonym.other;
  });
}

bool is_ours(std::string_view pointer) { return pointer == "/dstune" || pointer == "/autotuning"; }

std::string shortened(const json::value& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = to_json_text(value, 0);
  return text.size() <= kLongest ? text : describe(value);
}

class Remover {
 public:
  explicit Remover(std::vector<std::string>& notes) : notes_(notes) {}

  /// Removes each member called `name`, below `object` too. @returns how many
  int remove_named(json::object& object, std::string_view name, const std::string& pointer) {
    int count = remove_here(object, name, pointer);
    for (auto& member : object) {
      const std::string place = child(pointer, std::string_view(member.key()));
      if (is_ours(place) || !member.value().is_object()) continue;
      count += remove_named(member.value().get_object(), name, place);
    }
    return count;
  }

  /// Removes the member at the end of `path`. @returns how many: 0 or 1, or both of its names
  int remove_at(json::object& object, const std::vector<std::string>& path) {
    json::object* parent = &object;
    std::string pointer;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      auto* next = parent->if_contains(path[i]);
      if (next == nullptr || !next->is_object()) return 0;
      parent = &next->get_object();
      pointer = child(pointer, path[i]);
    }
    return remove_here(*parent, path.back(), pointer);
  }

 private:
  int remove_here(json::object& object, std::string_view name, const std::string& pointer) {
    std::vector<std::string_view> keys;
    for (const auto& member : object) {
      const std::string place = child(pointer, std::string_view(member.key()));
      if (!is_same_key(name, std::string_view(member.key())) || is_ours(place)) continue;
      notes_.push_back(concat("tuned without ", place, ", which was ", shortened(member.value())));
      keys.emplace_back(member.key());
    }
    const auto count = static_cast<int>(keys.size());
    if (count > 0) object = without_keys(object, keys);
    return count;
  }

  std::vector<std::string>& notes_;
};

// RFC 6901 writes a slash as "~1" and a tilde as "~0".
std::string unescaped(const std::string& part) {
  std::string key;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::string_view pair = std::string_view(part).substr(i, 2);
    if (pair == "~0" || pair == "~1") {
      key += pair == "~0" ? '~' : '/';
      ++i;
    } else {
      key += part[i];
    }
  }
  return key;
}

std::vector<std::string> path_of(const std::string& pointer) {
  auto parts = split(std::string_view(pointer).substr(1), '/');
  for (auto& part : parts) part = unescaped(part);
  return parts;
}

bool is_pointer(const std::string& key) { return key.size() > 1 && key.front() == '/'; }

void collect_names(const json::object& object, const std::string& pointer,
                   std::vector<std::string>& names, std::vector<std::string>& pointers) {
  for (const auto& member : object) {
    const std::string place = child(pointer, std::string_view(member.key()));
    if (is_ours(place)) continue;
    names.emplace_back(member.key());
    pointers.push_back(place);
    if (member.value().is_object()) {
      collect_names(member.value().get_object(), place, names, pointers);
    }
  }
}

// @returns from how many places it was removed
int remove(json::object& file, const std::string& key, std::vector<std::string>& notes) {
  Remover remover(notes);
  if (is_pointer(key)) return remover.remove_at(file, path_of(key));
  const int count = remover.remove_named(file, key, "");
  return count > 0 ? count : remover.remove_at(file, split(key, '.'));
}

// What an earlier --without has taken already is no fault.
void leave_out(json::object& file, const json::object& given, const std::string& key,
               std::vector<std::string>& notes, Problems& problems) {
  if (remove(file, key, notes) > 0) return;
  json::object rest = given;
  std::vector<std::string> ignored;
  if (remove(rest, key, ignored) > 0) return;
  std::vector<std::string> names;
  std::vector<std::string> pointers;
  collect_names(given, "", names, pointers);
  problems.add("--without", concat("is ", in_quotes(key), ", which is not in the file",
                                   suggestion(key, is_pointer(key) ? pointers : names)));
}

// The checks take "true" and 1 for true, too.
std::optional<json::value> enabled_of(const json::object& section) {
  const auto* const enabled = section.if_contains("enabled");
  if (enabled == nullptr) return std::nullopt;
  return coerced(*enabled, rules::boolean("enabled"));
}

// A section that is something else than an object is left to the checks.
void set_enabled(json::object& file, const std::string& name, bool on, Overrides& overrides) {
  auto* section = file.if_contains(name);
  if (section == nullptr && !on) return;
  if (section == nullptr) section = &file[name];
  if (section->is_null()) section->emplace_object();
  if (!section->is_object()) return;
  json::object& object = section->get_object();
  const auto enabled = enabled_of(object);
  if (enabled && enabled->is_bool() && enabled->get_bool() != on) {
    overrides.warnings.push_back(concat("--precision overrides /", name, "/enabled, which is ",
                                        enabled->get_bool() ? "true" : "false"));
  }
  object["enabled"] = on;
}

void enable_only(json::object& file, const std::string& precision, Overrides& overrides) {
  const auto* const modern = file.if_contains("bf16");
  const bool has_modern = modern != nullptr && !modern->is_null();
  const char* bf16 = file.contains("bfloat16") && !has_modern ? "bfloat16" : "bf16";
  set_enabled(file, "fp16", precision == "fp16", overrides);
  set_enabled(file, bf16, precision == "bf16", overrides);
}

// dstune.precision settles it, too.
bool has_own_precision(const json::object& file) {
  const auto* const section = file.if_contains("dstune");
  const auto* const dstune = section == nullptr ? nullptr : section->if_object();
  const auto* const own = dstune == nullptr ? nullptr : dstune->if_contains("precision");
  return own != nullptr && !own->is_null();
}

/// The precision that an "auto" of the file most likely stands for; "" if none is open. Where both
/// are, the newer one; a file without a section for bf16 is not of one who trains in it.
std::string open_precision(const json::object& file) {
  if (has_own_precision(file)) return "";
  std::string open;
  for (const char* name : {"fp16", "bf16", "bfloat16"}) {
    const auto* const section = file.if_contains(name);
    if (section == nullptr || !section->is_object()) continue;
    const auto enabled = enabled_of(section->get_object());
    if (!enabled) continue;
    if (enabled->is_bool() && enabled->get_bool()) return "";
    if (is_auto(*enabled)) open = std::string_view(name) == "fp16" ? "fp16" : "bf16";
  }
  return open;
}

void settle_precision(json::object& file, const CommandLine& options, Overrides& overrides) {
  if (options.precision) {
    enable_only(file, *options.precision, overrides);
    overrides.notes.push_back(concat("tuned in ", *options.precision, ", as --precision says"));
    return;
  }
  overrides.open_precision = open_precision(file);
  if (overrides.open_precision.empty()) return;
  enable_only(file, overrides.open_precision, overrides);
  overrides.notes.push_back(concat("tuned in ", open_precision_text(overrides.open_precision)));
}

// Null and "auto" say nothing that an option could win over.
void set_value(json::object& object, const std::string& pointer, std::string_view flag,
               const char* key, const json::value& value, Overrides& overrides) {
  const auto* const given = object.if_contains(key);
  if (given != nullptr && !given->is_null() && !is_auto(*given) && *given != value) {
    overrides.warnings.push_back(concat(flag, " ", to_json_text(value, 0), " overrides ",
                                        child(pointer, key), ", which is ", shortened(*given)));
  }
  object[key] = value;
}

// nullptr: it is something else than an object, which is left to the checks.
json::object* find_or_make(json::object& object, const char* key) {
  json::value& section = object[key];
  if (section.is_null()) section.emplace_object();
  return section.if_object();
}

// One length that is said twice would be a contradiction.
void drop_lengths(json::object& dstune, const json::value& tokens, Overrides& overrides) {
  const auto* const lengths = dstune.if_contains("lengths");
  if (lengths == nullptr || !(lengths->is_number() || lengths->is_array())) return;
  overrides.warnings.push_back(concat("--sequence-length ", to_json_text(tokens, 0),
                                      " overrides /dstune/lengths, which is ",
                                      shortened(*lengths)));
  dstune.erase("lengths");
}

void set_checkpointing(json::object& dstune, const std::string& text, Overrides& overrides,
                       Problems& problems) {
  try {
    set_value(dstune, "/dstune", "--checkpointing", "activation_checkpointing", parse_json(text),
              overrides);
  } catch (const std::invalid_argument&) {
    problems.add("--checkpointing", concat("is ", in_quotes(text),
                                           "; accepted: a value of "
                                           "dstune.activation_checkpointing, such as true, "
                                           "'{\"every_n_layers\": 2}' or '[false, true]'"));
  }
}

void set_dstune(json::object& file, const CommandLine& options, Overrides& overrides,
                Problems& problems) {
  if (!options.sequence_length && !options.checkpointing && !options.lora_rank) return;
  json::object* const dstune = find_or_make(file, "dstune");
  if (dstune == nullptr) return;
  if (options.sequence_length) {
    const json::value tokens(*options.sequence_length);
    drop_lengths(*dstune, tokens, overrides);
    set_value(*dstune, "/dstune", "--sequence-length", "sequence_length", tokens, overrides);
  }
  if (options.checkpointing) {
    set_checkpointing(*dstune, *options.checkpointing, overrides, problems);
  }
  if (!options.lora_rank) return;
  json::object* const lora = find_or_make(*dstune, "lora");
  if (lora == nullptr) return;
  set_value(*lora, "/dstune/lora", "--lora-r", "r", *options.lora_rank, overrides);
}

void set_batches(json::object& file, const CommandLine& options, Overrides& overrides) {
  if (options.train_batch_size) {
    set_value(file, "", "--train-batch-size", "train_batch_size", *options.train_batch_size,
              overrides);
  }
  if (options.micro_batch_size) {
    set_value(file, "", "--micro-batch-size", "train_micro_batch_size_per_gpu",
              *options.micro_batch_size, overrides);
  }
}

}  // namespace

Overrides apply_overrides(json::object& file, const CommandLine& options, Problems& problems) {
  Overrides overrides;
  const json::object given = options.without.empty() ? json::object() : file;
  for (const auto& key : options.without) leave_out(file, given, key, overrides.notes, problems);
  set_batches(file, options, overrides);
  set_dstune(file, options, overrides, problems);
  settle_precision(file, options, overrides);
  return overrides;
}

std::string open_precision_text(std::string_view precision) {
  if (precision.empty()) return "";
  return concat(precision, ", assumed since no precision is set (\"auto\"); use --precision ",
                precision == "bf16" ? "fp16" : "bf16", " or fp32 to change it");
}

}  // namespace dstune
