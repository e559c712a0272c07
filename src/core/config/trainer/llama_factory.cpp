#include "core/config/trainer/llama_factory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/trainer/integration.hpp"
#include "core/config/trainer/trainer_keys.hpp"
#include "core/config/trainer/training_arguments.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {
namespace {

constexpr std::array<std::string_view, 17> kLlamaFactorySteps = {
    "quantization_bit", "use_unsloth", "use_unsloth_gc",     "shift_attn", "mixture_of_depths",
    "use_dora",         "use_galore",  "use_apollo",         "use_badam",  "use_adam_mini",
    "use_muon",         "use_mca",     "use_hyper_parallel", "use_kt",     "use_llama_pro",
    "pure_bf16",        "fp8"};
constexpr std::array<std::string_view, 10> kLlamaFactoryNotModelled = {
    "upcast_layernorm",      "upcast_lmhead_output", "use_dft_loss",   "use_asft_loss",
    "use_eaft_loss",         "moe_aux_loss_coef",    "use_v1_kernels", "loraplus_lr_ratio",
    "enable_torch_profiler", "resize_vocab"};

json::value names_in(const std::string& list) {
  json::array names;
  for (const auto& name : split(list, ',')) {
    if (const auto trimmed = trim(name); !trimmed.empty()) names.emplace_back(trimmed);
  }
  return names;
}

// Without lora_alpha it is twice the rank, and "all" is every linear layer but the output layer.
void set_lora(Translation& file) {
  const std::int64_t rank = file.integer("lora_rank", 1).value_or(8);
  const auto alpha = file.number("lora_alpha");
  const auto target = file.text("lora_target").value_or("all");
  const auto extra = file.text("additional_target");
  json::object lora{{"r", rank}, {"lora_alpha", alpha.value_or(static_cast<double>(2 * rank))}};
  if (const auto dropout = file.number("lora_dropout")) lora["lora_dropout"] = *dropout;
  if (const auto rslora = file.flag("use_rslora")) lora["use_rslora"] = *rslora;
  lora["target_modules"] = trim(target) == "all" ? json::value("all-linear") : names_in(target);
  if (extra) lora["modules_to_save"] = names_in(*extra);
  file.set("lora", std::move(lora), "finetuning_type");
}

void set_fine_tuning(Translation& file) {
  const auto stage = file.text("stage").value_or("sft");
  if (stage != "sft" && stage != "pt") {
    file.fault("stage", concat("is ", in_quotes(stage),
                               ", whose steps are not modelled; accepted: sft, pt"));
  }
  const auto type = file.text("finetuning_type").value_or("lora");
  if (type == "lora") {
    set_lora(file);
  } else if (type != "full") {
    file.fault("finetuning_type",
               concat("is ", in_quotes(type), ", which is not modelled; accepted: full, lora"));
  }
}

void set_flash_attention(Translation& file) {
  constexpr std::string_view kKey = "flash_attn";
  const std::vector<std::string> known = {"auto", "disabled", "sdpa", "fa2", "fa3"};
  const auto name = file.text(kKey).value_or("auto");
  if (std::ranges::count(known, name) == 0) {
    const std::string near = suggestion(name, known);
    file.fault(kKey, concat("is ", in_quotes(name), ", which is not modelled", near,
                            near.empty() ? "; accepted: " : " accepted: ", join(known, ", ")));
  }
  if (name == "disabled") file.set("attention", "eager", kKey);
  if (name == "sdpa") file.set("attention", "sdpa", kKey);
  if (name == "fa2" || name == "fa3") file.set("attention", "flash", kKey);
}

void set_lengths(Translation& file) {
  constexpr std::int64_t kCutOff = 2048;
  constexpr std::string_view kKey = "cutoff_len";
  file.set("sequence_length", file.integer(kKey, 1).value_or(kCutOff), kKey);
  const bool is_packed =
      file.flag("packing").value_or(false) || file.flag("neat_packing").value_or(false);
  file.note(concat(is_packed ? "packing: every row is assumed to be full"
                             : "every sample is assumed to have cutoff_len tokens",
                   "; give dstune.lengths to describe your samples"));
}

}  // namespace

json::object translate_llama_factory(Translation& file) {
  json::object deepspeed = translate_trainer_part(read_trainer_arguments(file), file);
  if (const auto model = file.text("model_name_or_path")) {
    file.set("model", json::string(*model), "model_name_or_path");
  }
  set_lengths(file);
  set_fine_tuning(file);
  set_flash_attention(file);
  const bool is_off = file.flag("disable_gradient_checkpointing").value_or(false);
  set_checkpointing_of(!is_off, nullptr, file.flag("use_reentrant_gc").value_or(true),
                       "disable_gradient_checkpointing", file);
  if (file.flag("enable_liger_kernel").value_or(false)) {
    file.set("loss", "fused", "enable_liger_kernel");
    file.note("Liger's kernels other than that of the loss are not modelled");
  }
  file.refuse(kLlamaFactorySteps, "whose steps are not modelled");
  file.leave_out(kLlamaFactoryNotModelled);
  std::vector<std::string_view> ignored(trainer_keys_without_effect().begin(),
                                        trainer_keys_without_effect().end());
  ignored.insert(ignored.end(), kLlamaFactoryKeysWithoutEffect.begin(),
                 kLlamaFactoryKeysWithoutEffect.end());
  file.warn_of_unknown(ignored);
  return deepspeed;
}

}  // namespace dstune
