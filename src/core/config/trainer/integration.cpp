#include "core/config/trainer/integration.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {
namespace {

// As Python compares: 1 equals 1.0, and lists element by element.
bool are_equal(const json::value& one, const json::value& other) {
  if (one.is_number() && other.is_number()) {
    return one.to_number<double>() == other.to_number<double>();
  }
  if (one.is_array() && other.is_array()) {
    return std::ranges::equal(one.get_array(), other.get_array(), are_equal);
  }
  return one == other;
}

std::string json_of(const json::value& value) { return to_json_text(value, 0); }

template <class Member, class Value>
void take(Member& member, const std::optional<Value>& value) {
  if (value) member = *value;
}

/// Fills and compares single keys.
class Filler {
 public:
  Filler(json::object& deepspeed, Translation& file) : deepspeed_(deepspeed), file_(file) {}

  void match(std::string_view dotted, const json::value& value, std::string_view key) {
    json::value* const own = find_in(deepspeed_, dotted);
    if (own == nullptr || own->is_null()) return;
    if (is_auto(*own)) {
      *own = value;
      file_.note_origin(dotted, value, key);
    } else if (!are_equal(*own, value)) {
      const bool is_default = file_.find(key) == nullptr;
      file_.fault(key, concat("is ", json_of(value), is_default ? " by default" : "", ", but ",
                              dotted, " of the DeepSpeed file is ", json_of(*own),
                              ", which the Trainer refuses; accepted: the same, or "
                              "\"auto\" there"));
    }
  }
  /// @param key  that says so; "": nothing in the file does
  void fill(std::string_view dotted, const json::value& value, std::string_view key = "") {
    json::value* const own = find_in(deepspeed_, dotted);
    if (own == nullptr || !is_auto(*own)) return;
    *own = value;
    if (!key.empty()) file_.note_origin(dotted, value, key);
  }

 private:
  json::object& deepspeed_;
  Translation& file_;
};

bool is_enabled(json::object& deepspeed, std::string_view section) {
  const json::value* const enabled = find_in(deepspeed, concat(section, ".enabled"));
  return enabled != nullptr &&
         (enabled->is_bool() ? enabled->get_bool()
                             : enabled->is_string() && (enabled->get_string() == "true" ||
                                                        enabled->get_string() == "True"));
}

}  // namespace

TrainerArguments read_trainer_numbers(Translation& file) {
  TrainerArguments arguments;
  take(arguments.accumulation_steps, file.integer("gradient_accumulation_steps", 1));
  take(arguments.max_grad_norm, file.number("max_grad_norm"));
  take(arguments.learning_rate, file.number("learning_rate"));
  take(arguments.adam_beta1, file.number("adam_beta1"));
  take(arguments.adam_beta2, file.number("adam_beta2"));
  take(arguments.adam_epsilon, file.number("adam_epsilon"));
  take(arguments.weight_decay, file.number("weight_decay"));
  return arguments;
}

TrainerArguments read_trainer_arguments(Translation& file) {
  TrainerArguments arguments = read_trainer_numbers(file);
  take(arguments.micro_batch, file.integer(arguments.micro_batch_key, 1));
  take(arguments.fp16, file.flag("fp16"));
  take(arguments.bf16, file.flag("bf16"));
  take(arguments.fp16_full_eval, file.flag("fp16_full_eval"));
  take(arguments.bf16_full_eval, file.flag("bf16_full_eval"));
  if (arguments.fp16_full_eval && !arguments.fp16) arguments.fp16_key = "fp16_full_eval";
  if (arguments.bf16_full_eval && !arguments.bf16) arguments.bf16_key = "bf16_full_eval";
  take(arguments.save_on_each_node, file.flag("save_on_each_node"));
  return arguments;
}

void fill_as_trainer(const TrainerArguments& arguments, json::object& deepspeed,
                     Translation& file) {
  Filler filler(deepspeed, file);
  filler.match("train_micro_batch_size_per_gpu", arguments.micro_batch, arguments.micro_batch_key);
  filler.match("gradient_accumulation_steps", arguments.accumulation_steps,
               "gradient_accumulation_steps");
  filler.match("gradient_clipping", arguments.max_grad_norm, "max_grad_norm");
  filler.match("optimizer.params.lr", arguments.learning_rate, "learning_rate");
  filler.match("optimizer.params.betas", json::array{arguments.adam_beta1, arguments.adam_beta2},
               "adam_beta1");
  filler.match("optimizer.params.eps", arguments.adam_epsilon, "adam_epsilon");
  filler.match("optimizer.params.weight_decay", arguments.weight_decay, "weight_decay");
  filler.fill("scheduler.params.warmup_min_lr", 0);
  filler.match("scheduler.params.warmup_max_lr", arguments.learning_rate, "learning_rate");
  filler.match("fp16.enabled", arguments.fp16 || arguments.fp16_full_eval, arguments.fp16_key);
  filler.match("bf16.enabled", arguments.bf16 || arguments.bf16_full_eval, arguments.bf16_key);
  if (arguments.save_on_each_node) {
    json::value& checkpoint = deepspeed["checkpoint"];
    if (!checkpoint.is_object()) checkpoint.emplace_object();
    checkpoint.get_object()["use_node_local_storage"] = true;
  }
  if (!deepspeed.contains("gradient_accumulation_steps")) {
    deepspeed["gradient_accumulation_steps"] = 1;
  }
  const std::string_view precision = arguments.fp16 ? "fp16" : arguments.bf16 ? "bf16" : "no";
  set_mixed_precision(precision, arguments.fp16 ? arguments.fp16_key : arguments.bf16_key,
                      deepspeed, file);
}

void set_mixed_precision(std::string_view precision, std::string_view key, json::object& deepspeed,
                         Translation& file) {
  if (precision != "no" && !deepspeed.contains(precision)) {
    json::object section{{"enabled", true}};
    if (precision == "fp16") section["auto_cast"] = true;
    deepspeed[precision] = std::move(section);
    file.note_origin(concat(precision, ".enabled"), true, key);
  }
  const std::string_view other = precision == "fp16" ? "bf16" : "fp16";
  if (precision != "no" && is_enabled(deepspeed, other)) {
    file.fault(key, concat("is for ", precision, ", but the DeepSpeed file enables ", other,
                           ", which accelerate refuses"));
  }
  Filler filler(deepspeed, file);
  for (const std::string_view each : {"fp16", "bf16"}) {
    if (!deepspeed.contains(each)) deepspeed[each] = json::object{{"enabled", false}};
    filler.fill(concat(each, ".enabled"), each == precision, key);
  }
}

json::value* find_in(json::object& deepspeed, std::string_view dotted) {
  json::object* section = &deepspeed;
  const auto keys = split(dotted, '.');
  for (std::size_t i = 0;; ++i) {
    json::value* const member = section->if_contains(keys[i]);
    if (member == nullptr || i + 1 == keys.size()) return member;
    if (!member->is_object()) return nullptr;
    section = &member->get_object();
  }
}

}  // namespace dstune
