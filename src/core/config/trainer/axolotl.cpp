#include "core/config/trainer/axolotl.hpp"

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

namespace dstune {
namespace {

constexpr std::array<std::string_view, 31> kOtherSteps = {"rl",
                                                          "reward_model",
                                                          "process_reward_model",
                                                          "fsdp",
                                                          "fsdp_config",
                                                          "load_in_8bit",
                                                          "load_in_4bit",
                                                          "gptq",
                                                          "fp8",
                                                          "qat",
                                                          "quantization",
                                                          "relora",
                                                          "lisa_n_layers",
                                                          "unfrozen_parameters",
                                                          "peft_use_dora",
                                                          "activation_offloading",
                                                          "layer_offloading",
                                                          "selective_checkpointing",
                                                          "deepcompile",
                                                          "tiled_mlp",
                                                          "lora_target_parameters",
                                                          "batch_size",
                                                          "xformers_attention",
                                                          "flex_attention",
                                                          "sage_attention",
                                                          "ebft",
                                                          "use_onebitllms",
                                                          "model_quantization_config",
                                                          "s2_attention",
                                                          "quantize_moe_experts",
                                                          "peft_layer_replication"};
constexpr std::array<std::string_view, 33> kNotModelled = {"noisy_embedding_alpha",
                                                           "loraplus_lr_ratio",
                                                           "lora_mlp_kernel",
                                                           "lora_qkv_kernel",
                                                           "lora_o_kernel",
                                                           "lora_embedding_kernel",
                                                           "chunked_cross_entropy",
                                                           "cut_cross_entropy",
                                                           "use_eaft",
                                                           "flash_attn_cross_entropy",
                                                           "flash_attn_fuse_mlp",
                                                           "fp32_norms",
                                                           "embedding_lr",
                                                           "embedding_lr_scale",
                                                           "lr_groups",
                                                           "resize_token_embeddings_to_32x",
                                                           "liger_cross_entropy",
                                                           "batch_flattening",
                                                           "use_kernels",
                                                           "large_head_attention",
                                                           "scaling_softmax",
                                                           "lora_rank_pattern",
                                                           "lora_alpha_pattern",
                                                           "peft_layers_pattern",
                                                           "ple_cpu_offload",
                                                           "overrides_of_model_config",
                                                           "flash_attn_rms_norm",
                                                           "fused_attn_kernel",
                                                           "flash_attn_d512",
                                                           "llama4_linearized_experts",
                                                           "trainer_cls",
                                                           "shrink_embeddings",
                                                           "profiler_steps"};
constexpr std::array<std::string_view, 5> kParallel = {
    "tensor_parallel_size", "context_parallel_size", "sequence_parallel_degree", "dp_shard_size",
    "dp_replicate_size"};

bool is_text(const json::value* value, std::string_view text) {
  return value != nullptr && value->is_string() && value->get_string() == text;
}

// "auto", the default where bf16 is absent, is bf16 where the device has it; null is off; "full"
// sets bf16_full_eval alone.
void read_precision(TrainerArguments& arguments, Translation& file) {
  const bool float16 = file.flag("float16").value_or(false);
  const bool fp16 = file.flag("fp16").value_or(false) || float16;
  const bool bfloat16 = file.flag("bfloat16").value_or(false);
  if (float16) arguments.fp16_key = "float16";
  const json::value* const bf16 = file.find("bf16");
  if (is_text(bf16, "full")) {
    arguments.bf16_full_eval = true;
  } else if (!file.has("bf16") || is_text(bf16, "auto")) {
    arguments.bf16 = !fp16;
    if (!fp16) file.note("bf16 is \"auto\": assumed to be on, as on devices that have bf16");
  } else {
    const bool is_on = file.flag("bf16").value_or(false);
    arguments.bf16 = is_on || bfloat16;
    if (!is_on && bfloat16) arguments.bf16_key = "bfloat16";
  }
  arguments.fp16 = fp16 && !arguments.bf16;
}

TrainerArguments read_arguments(Translation& file) {
  TrainerArguments arguments = read_trainer_numbers(file);
  arguments.micro_batch_key = "micro_batch_size";
  arguments.micro_batch = file.integer(arguments.micro_batch_key, 1).value_or(1);
  read_precision(arguments, file);
  return arguments;
}

void set_length(Translation& file) {
  constexpr std::int64_t kLength = 512;
  constexpr std::string_view kKey = "sequence_len";
  file.set("sequence_length", file.integer(kKey, 1).value_or(kLength), kKey);
  file.note(concat(file.flag("sample_packing").value_or(false)
                       ? "sample_packing: every row is assumed to be full"
                       : "every sample is assumed to have sequence_len tokens",
                   "; give dstune.lengths to describe your samples"));
}

void set_adapter(Translation& file) {
  const auto adapter = file.text("adapter");
  const auto rank = file.integer("lora_r", 1);
  const auto alpha = file.number("lora_alpha");
  const auto dropout = file.number("lora_dropout");
  const bool is_all = file.flag("lora_target_linear").value_or(false);
  const json::value* const targets = file.find("lora_target_modules");
  const json::value* const saved = file.find("lora_modules_to_save");
  const json::value* const layers = file.find("peft_layers_to_transform");
  const auto rslora = file.flag("peft_use_rslora");
  if (!adapter || adapter->empty()) return;
  if (*adapter != "lora") {
    file.fault("adapter", concat("is ", in_quotes(*adapter),
                                 ", which is not modelled; accepted: lora, or none"));
    return;
  }
  json::object lora{{"lora_dropout", dropout.value_or(0)}};
  if (rank) lora["r"] = *rank;
  if (alpha) lora["lora_alpha"] = *alpha;
  if (is_all) {
    lora["target_modules"] = "all-linear";
  } else if (targets != nullptr) {
    lora["target_modules"] = *targets;
  }
  if (saved != nullptr) lora["modules_to_save"] = *saved;
  if (layers != nullptr) lora["layers_to_transform"] = *layers;
  if (rslora) lora["use_rslora"] = *rslora;
  file.set("lora", std::move(lora), "adapter");
}

// The flags are older names of attn_implementation.
void set_attention_of(Translation& file) {
  set_attention("attn_implementation", file);
  const std::array<std::pair<std::string_view, std::string_view>, 3> flags = {
      {{"flash_attention", "flash"}, {"sdp_attention", "sdpa"}, {"eager_attention", "eager"}}};
  for (const auto& [key, kind] : flags) {
    if (file.flag(key).value_or(false)) file.set("attention", json::string(kind), key);
  }
}

void set_checkpointing(Translation& file) {
  constexpr std::string_view kKey = "gradient_checkpointing";
  const json::value* const kwargs = file.find("gradient_checkpointing_kwargs");
  const json::value* const given = file.find(kKey);
  if (given != nullptr && given->is_string() && given->get_string().starts_with("offload")) {
    file.fault(kKey,
               concat("is ", describe(*given), ", which is not modelled; accepted: true, false"));
    return;
  }
  set_checkpointing_of(file.flag(kKey).value_or(false), kwargs, false, kKey, file);
}

void set_axolotl_loss(Translation& file) {
  bool has_kernels = false;
  for (const std::string_view key : {"liger_rope", "liger_rms_norm", "liger_layer_norm",
                                     "liger_swiglu", "liger_glu_activation"}) {
    has_kernels = file.flag(key).value_or(false) || has_kernels;
  }
  constexpr std::string_view kFused = "liger_fused_linear_cross_entropy";
  if (file.flag(kFused).value_or(false)) file.set("loss", "fused", kFused);
  if (has_kernels) file.note("Liger's kernels other than that of the loss are not modelled");
}

void refuse_parallel(Translation& file) {
  for (const std::string_view key : kParallel) {
    const auto size = file.integer(key, 1);
    if (size && *size > 1) file.fault(key, concat("is ", *size, ", which is not modelled"));
  }
}

}  // namespace

json::object translate_axolotl(Translation& file) {
  json::object deepspeed = translate_trainer_part(read_arguments(file), file);
  check_optimizer("optimizer", deepspeed, file);
  if (const auto model = file.text("base_model")) {
    file.set("model", json::string(*model), "base_model");
  }
  set_length(file);
  set_adapter(file);
  set_attention_of(file);
  set_checkpointing(file);
  set_axolotl_loss(file);
  file.refuse(kOtherSteps, "whose steps are not modelled");
  refuse_parallel(file);
  file.leave_out(kNotModelled);
  std::vector<std::string_view> ignored(trainer_keys_without_effect().begin(),
                                        trainer_keys_without_effect().end());
  ignored.insert(ignored.end(), kAxolotlKeysWithoutEffect.begin(), kAxolotlKeysWithoutEffect.end());
  file.warn_of_unknown(ignored);
  return deepspeed;
}

}  // namespace dstune
