#include "core/config/trainer/accelerate_config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/trainer/integration.hpp"

namespace dstune {
namespace {

constexpr std::array<std::string_view, 1> kAccelerateNotModelled = {"dynamo_config"};
constexpr std::array<std::string_view, 3> kAccelerateSharding = {
    "fsdp_config", "megatron_lm_config", "parallelism_config"};
// Where processes run and how they find each other.
constexpr std::array<std::string_view, 25> kWithoutEffect = {"compute_environment",
                                                             "debug",
                                                             "downcast_bf16",
                                                             "enable_cpu_affinity",
                                                             "gpu_ids",
                                                             "machine_rank",
                                                             "main_process_ip",
                                                             "main_process_port",
                                                             "main_training_function",
                                                             "num_machines",
                                                             "rdzv_backend",
                                                             "same_network",
                                                             "tpu_env",
                                                             "tpu_use_cluster",
                                                             "tpu_use_sudo",
                                                             "use_cpu",
                                                             "tpu_name",
                                                             "tpu_zone",
                                                             "commands",
                                                             "command_file",
                                                             "ipex_config",
                                                             "mpirun_config",
                                                             "fp8_config",
                                                             "use_xpu",
                                                             "tpu_vm"};
constexpr std::array<std::string_view, 5> kLaunchKeys = {
    "deepspeed_multinode_launcher", "deepspeed_hostfile", "deepspeed_exclusion_filter",
    "deepspeed_inclusion_filter", "zero3_save_16bit_model"};
// With a DeepSpeed file accelerate refuses to have these beside it (_deepspeed_config_checks).
constexpr std::array<std::string_view, 8> kNotBesideFile = {
    "gradient_accumulation_steps", "gradient_clipping",     "zero_stage",
    "offload_optimizer_device",    "offload_param_device",  "offload_param_nvme_path",
    "offload_optimizer_nvme_path", "zero3_save_16bit_model"};

// What DeepSpeedPlugin makes where there is no file.
json::object plugin_config(Translation& section) {
  const json::value* const steps = section.find("gradient_accumulation_steps");
  const bool is_open = steps == nullptr || *steps == "auto";
  json::object zero{{"stage", section.integer("zero_stage", 0).value_or(2)}};
  const auto offload = [&](const char* part) {
    const auto device = section.text(concat("offload_", part, "_device")).value_or("none");
    json::object own{{"device", json::string(device)}};
    const std::string key = concat("offload_", part, "_nvme_path");
    const auto path = section.text(key);
    if (device == "nvme" && !path) section.fault(key, "is absent; accepted: a folder on a drive");
    if (device == "nvme" && path) own["nvme_path"] = json::string(*path);
    zero[concat("offload_", part)] = std::move(own);
  };
  offload("optimizer");
  offload("param");
  zero["stage3_gather_16bit_weights_on_model_save"] =
      section.flag("zero3_save_16bit_model").value_or(false);
  json::object config{{"train_batch_size", "auto"}, {"train_micro_batch_size_per_gpu", "auto"}};
  config["gradient_accumulation_steps"] =
      is_open ? json::value("auto")
              : json::value(section.integer("gradient_accumulation_steps", 1).value_or(1));
  config["zero_optimization"] = std::move(zero);
  const json::value* const clipping = section.find("gradient_clipping");
  if (clipping == nullptr || *clipping == "auto") {
    config["gradient_clipping"] = "auto";
  } else if (const double norm = section.number("gradient_clipping").value_or(0); norm != 0) {
    config["gradient_clipping"] = norm;
  }
  return config;
}

json::object file_config(Translation& section, Translation& file, bool has_precision) {
  constexpr std::string_view kKey = "deepspeed_config_file";
  auto given = section.read_deepspeed(kKey);
  if (*section.find(kKey) == "") section.fault(kKey, "is an empty string; accepted: a file");
  for (const std::string_view key : kNotBesideFile) {
    if (section.find(key) == nullptr) continue;
    section.fault(key, "is given together with deepspeed_config_file, which accelerate refuses");
  }
  if (has_precision) {
    file.fault("mixed_precision",
               "is given together with deepspeed_config_file, which accelerate refuses");
  }
  if (!given) return {};
  if (!given->contains("gradient_accumulation_steps")) (*given)["gradient_accumulation_steps"] = 1;
  if (!given->contains("zero_optimization")) {
    section.fault(kKey, "names a file without zero_optimization, which accelerate refuses");
  }
  return std::move(*given);
}

bool is_stage_3(json::object& config) {
  const json::value* const stage = find_in(config, "zero_optimization.stage");
  return stage != nullptr && stage->is_number() && stage->to_number<double>() == 3;
}

void set_init_of_zero3(Translation& section, json::object& config, Translation& file) {
  constexpr std::string_view kKey = "zero3_init_flag";
  const auto init = section.flag(kKey);
  if (init && is_stage_3(config)) file.set("zero_init", *init, concat("deepspeed_config.", kKey));
}

}  // namespace

json::object translate_accelerate_config(Translation& file) {
  const auto type = file.text("distributed_type");
  if (type && *type != "DEEPSPEED") {
    file.fault("distributed_type",
               concat("is ", in_quotes(*type), "; accepted: DEEPSPEED, which is what is tuned"));
  }
  const auto precision = file.text("mixed_precision");
  if (precision && *precision != "no" && *precision != "fp16" && *precision != "bf16") {
    file.fault("mixed_precision", concat("is ", in_quotes(*precision),
                                         ", which is not modelled; accepted: no, fp16, bf16"));
  }
  const json::value* const given = file.find("deepspeed_config");
  const json::object nothing;
  const bool is_object = given != nullptr && given->is_object();
  if (given != nullptr && !is_object) {
    file.fault("deepspeed_config", concat("is ", describe(*given), "; accepted: a mapping"));
  }
  Translation section = file.section("deepspeed_config", is_object ? given->get_object() : nothing);
  const bool names_file = section.find("deepspeed_config_file") != nullptr;
  json::object config =
      names_file ? file_config(section, file, precision.has_value()) : plugin_config(section);
  set_mixed_precision(precision.value_or("no"), "mixed_precision", config, file);
  set_init_of_zero3(section, config, file);
  constexpr std::array<std::string_view, 1> kLeaves = {"deepspeed_moe_layer_cls_names"};
  section.leave_out(kLeaves);
  section.warn_of_unknown(kLaunchKeys);
  file.leave_out(kAccelerateNotModelled);
  file.refuse(kAccelerateSharding, "which is not DeepSpeed");
  if (const auto ranks = file.integer("num_processes", 1)) {
    file.note(concat(file.file_name(), " trains on ", *ranks,
                     " ranks: a plan for as many is --plan "
                     "--world-size ",
                     *ranks));
  }
  file.warn_of_unknown(kWithoutEffect);
  return config;
}

}  // namespace dstune
