#include "core/config/trainer/training_arguments.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/trainer/trainer_keys.hpp"

namespace dstune {
namespace {

constexpr std::array<std::string_view, 7> kArgumentsNotModelled = {"torch_compile",
                                                                   "neftune_noise_alpha",
                                                                   "label_smoothing_factor",
                                                                   "torch_empty_cache_steps",
                                                                   "full_determinism",
                                                                   "activation_offloading",
                                                                   "padding_free"};
constexpr std::array<std::string_view, 2> kArgumentsSharding = {"fsdp", "parallelism_config"};
// They win over optim and per_device_train_batch_size.
constexpr std::array<std::string_view, 2> kDeprecated = {"adafactor", "per_gpu_train_batch_size"};
constexpr std::array<std::string_view, 2> kQuantized = {"load_in_4bit", "load_in_8bit"};
constexpr std::array<std::string_view, 2> kOtherAdapters = {"use_dora", "lora_target_parameters"};

// The key that only TRL's SFTConfig has, whose defaults are others than those of the class that it
// derives from; "" if there is none.
std::string_view key_of_trl(Translation& file) {
  std::string_view found;
  for (const std::string_view key :
       {"dataset_text_field", "assistant_only_loss", "completion_only_loss"}) {
    if (file.find(key) != nullptr) found = key;
  }
  return found;
}

void set_arguments_loss(Translation& file) {
  const json::value* const config = file.find("liger_kernel_config");
  if (!file.flag("use_liger_kernel").value_or(false)) return;
  const json::value* const fused =
      config != nullptr && config->is_object()
          ? config->get_object().if_contains("fused_linear_cross_entropy")
          : nullptr;
  const bool is_off = fused != nullptr && fused->is_bool() && !fused->get_bool();
  if (!is_off) file.set("loss", "fused", "use_liger_kernel");
  file.note("Liger's kernels other than that of the loss are not modelled");
}

void set_length(bool of_trl, Translation& file) {
  std::optional<std::int64_t> length;
  for (const std::string_view key : {"max_length", "max_seq_length", "block_size"}) {
    const auto own = file.integer(key, 1);
    if (!own || length) continue;
    length = own;
    file.set("sequence_length", *own, key);
  }
  constexpr std::int64_t kTrlLength = 1024;
  if (length || !of_trl) return;
  if (file.has("max_length")) {
    file.note("max_length is null, so no sample is cut: --sequence-length says how long they are");
  } else {
    file.set("sequence_length", kTrlLength, "max_length");
  }
}

void set_peft(Translation& file) {
  const bool is_on = file.flag("use_peft").value_or(false);
  const auto rank = file.integer("lora_r", 1);
  const auto alpha = file.number("lora_alpha");
  const auto dropout = file.number("lora_dropout");
  const auto rslora = file.flag("use_rslora");
  const json::value* const targets = file.find("lora_target_modules");
  const json::value* const saved = file.find("lora_modules_to_save");
  file.find("lora_task_type");
  if (!is_on) return;
  file.refuse(kOtherAdapters, "which is not modelled");
  json::object lora{{"r", rank.value_or(16)},
                    {"lora_alpha", alpha.value_or(32)},
                    {"lora_dropout", dropout.value_or(0.05)}};
  if (rslora) lora["use_rslora"] = *rslora;
  if (targets != nullptr) {
    const bool is_one = targets->is_array() && targets->get_array().size() == 1;
    lora["target_modules"] =
        is_one && targets->get_array()[0] == "all-linear" ? targets->get_array()[0] : *targets;
  }
  if (saved != nullptr) lora["modules_to_save"] = *saved;
  file.set("lora", std::move(lora), "use_peft");
}

}  // namespace

void check_optimizer(std::string_view key, const json::object& deepspeed, Translation& file) {
  const auto optimizer = file.text(key);
  if (!optimizer || deepspeed.contains("optimizer")) return;
  if (*optimizer == "adamw_torch" || *optimizer == "adamw_torch_fused") return;
  file.fault(key, concat("is ", in_quotes(*optimizer),
                         ", which is not modelled; accepted: adamw_torch, adamw_torch_fused, "
                         "or an optimizer in the DeepSpeed file"));
}

json::object translate_trainer_part(const TrainerArguments& arguments, Translation& file) {
  const bool names_one = file.find("deepspeed") != nullptr;
  auto given = file.read_deepspeed("deepspeed");
  if (!given) {
    given = json::object{{"train_micro_batch_size_per_gpu", "auto"},
                         {"gradient_accumulation_steps", "auto"},
                         {"gradient_clipping", "auto"}};
    if (!names_one) {
      file.note(concat(file.file_name(), " names no DeepSpeed file: every stage is searched"));
    }
  }
  fill_as_trainer(arguments, *given, file);
  check_optimizer("optim", *given, file);
  set_arguments_loss(file);
  file.leave_out(kArgumentsNotModelled);
  file.refuse(kArgumentsSharding, "which shards without DeepSpeed");
  file.refuse(kDeprecated, "which is not modelled");
  // It is for products of fp32, which a step in 16 bits has none of.
  constexpr std::array<std::string_view, 1> kTf32 = {"tf32"};
  file.find(kTf32.front());
  if (!arguments.fp16 && !arguments.bf16) file.leave_out(kTf32);
  return std::move(*given);
}

void set_checkpointing_of(bool is_on, const json::value* kwargs, bool reentrant,
                          std::string_view from, Translation& file) {
  if (!is_on) return;
  json::value every = 1;
  if (kwargs != nullptr && kwargs->is_object()) {
    for (const auto& member : kwargs->get_object()) {
      if (member.key() == "use_reentrant" && member.value().is_bool()) {
        reentrant = member.value().get_bool();
      } else if (member.key() == "every_n_layers" && member.value().is_int64()) {
        every = member.value();
      }
    }
  }
  json::object way{{"every_n_layers", every}};
  if (reentrant) way["use_reentrant"] = true;
  const bool is_usual = every == json::value(1) && !reentrant;
  file.set("activation_checkpointing", is_usual ? json::value(true) : json::value(std::move(way)),
           from);
}

void set_attention(std::string_view key, Translation& file) {
  const auto name = file.text(key);
  if (!name || name->empty()) return;
  if (*name == "eager" || *name == "sdpa") {
    file.set("attention", json::string(*name), key);
  } else if (name->find("flash") != std::string::npos) {
    file.set("attention", "flash", key);
  } else {
    file.fault(key, concat("is ", in_quotes(*name),
                           ", which is not modelled; accepted: eager, sdpa, flash_attention_2"));
  }
}

std::span<const std::string_view> trainer_keys_without_effect() {
  return kTrainerKeysWithoutEffect;
}

json::object translate_training_arguments(Translation& file) {
  const std::string_view trl_key = key_of_trl(file);
  const bool of_trl = !trl_key.empty();
  TrainerArguments arguments = read_trainer_arguments(file);
  if (of_trl) {
    constexpr double kTrlRate = 2e-5;
    if (file.find("learning_rate") == nullptr) arguments.learning_rate = kTrlRate;
    if (file.find("bf16") == nullptr) arguments.bf16 = !arguments.fp16;
    file.set("trainer", "trl", trl_key);
    const auto loss = file.text("loss_type").value_or("nll");
    if (loss != "nll" && loss != "chunked_nll") {
      file.fault("loss_type",
                 concat("is ", in_quotes(loss), ", which is not modelled; accepted: nll"));
    }
  }
  json::object deepspeed = translate_trainer_part(arguments, file);
  if (const auto model = file.text("model_name_or_path")) {
    file.set("model", json::string(*model), "model_name_or_path");
  }
  set_length(of_trl, file);
  set_attention("attn_implementation", file);
  file.refuse(kQuantized, "and quantized weights are not modelled");
  set_peft(file);
  const auto old_name = file.flag("gradient_checkpointing");
  const auto new_name = file.flag("activation_checkpointing");
  const json::value* const old_kwargs = file.find("gradient_checkpointing_kwargs");
  const json::value* const new_kwargs = file.find("activation_checkpointing_kwargs");
  set_checkpointing_of(new_name.value_or(old_name.value_or(of_trl)),
                       new_kwargs != nullptr ? new_kwargs : old_kwargs, false,
                       new_name ? "activation_checkpointing" : "gradient_checkpointing", file);
  if (file.flag("packing").value_or(false)) {
    file.note(
        "packing: every row is assumed to be full; give dstune.lengths to describe your samples");
  }
  file.warn_of_unknown(trainer_keys_without_effect());
  return deepspeed;
}

}  // namespace dstune
