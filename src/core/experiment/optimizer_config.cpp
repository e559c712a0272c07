#include "core/experiment/optimizer_config.hpp"

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {
namespace {

using fields::find;
using fields::is_on;
using fields::read;
using fields::section;

void read_betas(const json::object& params, double& beta1, double& beta2) {
  const json::value* betas = find(params, "betas");
  if (betas == nullptr) return;
  if (!betas->is_array() || betas->get_array().size() != 2) {
    fields::reject("betas", "pair of numbers");
  }
  beta1 = betas->get_array()[0].to_number<double>();
  beta2 = betas->get_array()[1].to_number<double>();
}

AdamSettings read_adam(const std::string& type, const json::object& params) {
  AdamSettings adam;
  read_betas(params, adam.beta1, adam.beta2);
  read(params, "eps", adam.epsilon);
  read(params, "bias_correction", adam.bias_correction);
  if (type == "adam") read(params, "adam_w_mode", adam.adam_w);
  read(params, "torch_adam", adam.torch);
  return adam;
}

SgdSettings read_sgd(const json::object& params) {
  SgdSettings sgd;
  read(params, "momentum", sgd.momentum);
  read(params, "dampening", sgd.dampening);
  read(params, "nesterov", sgd.nesterov);
  return sgd;
}

LionSettings read_lion(const json::object& params) {
  LionSettings lion;
  read_betas(params, lion.beta1, lion.beta2);
  return lion;
}

AdagradSettings read_adagrad(const json::object& params) {
  AdagradSettings adagrad;
  read(params, "eps", adagrad.epsilon);
  read(params, "lr_decay", adagrad.lr_decay);
  read(params, "initial_accumulator_value", adagrad.initial_accumulator);
  return adagrad;
}

LambSettings read_lamb(const json::object& params) {
  LambSettings lamb;
  read_betas(params, lamb.beta1, lamb.beta2);
  read(params, "eps", lamb.epsilon);
  read(params, "eps_inside_sqrt", lamb.epsilon_inside_root);
  read(params, "bias_correction", lamb.bias_correction);
  read(params, "max_coeff", lamb.max_ratio);
  read(params, "min_coeff", lamb.min_ratio);
  return lamb;
}

// DeepSpeed knows its own names in any case; all others must be classes of torch.optim.
bool read_settings(const std::string& type, const json::object& params,
                   OptimizerConfig& optimizer) {
  const std::string name = lower(type);
  if (name == "adam" || name == "adamw") {
    const AdamSettings adam = read_adam(name, params);
    if (adam.torch && adam.adam_w) optimizer.weight_decay = 1e-2;  // torch.optim.AdamW's default
    optimizer.settings = adam;
  } else if (type == "SGD") {
    optimizer.settings = read_sgd(params);
  } else if (name == "lion") {
    optimizer.settings = read_lion(params);
  } else if (name == "adagrad") {
    optimizer.settings = read_adagrad(params);
    optimizer.lr = 1e-2;
  } else if (name == "lamb") {
    optimizer.settings = read_lamb(params);
  } else {
    return false;
  }
  return true;
}

// These settings choose other kernels, or other passes, of the same optimizer.
void find_unsupported_params(const json::object& params, std::vector<std::string>& unsupported) {
  for (const auto* key : {"amsgrad", "maximize", "capturable", "differentiable", "fused"}) {
    if (is_on(params, key)) unsupported.push_back(concat("optimizer.params.", key));
  }
  if (find(params, "foreach") != nullptr) unsupported.emplace_back("optimizer.params.foreach");
}

// Finds the settings that DeepSpeed refuses when it starts.
void find_refused(const json::object& root, const std::string& type,
                  const OptimizerConfig& optimizer, std::vector<std::string>& unsupported) {
  double stage = 0;
  read(section(root, "zero_optimization"), "stage", stage);
  const bool is_untested = is<SgdSettings>(optimizer) || is<LambSettings>(optimizer);
  if (stage > 0 && is_untested && !is_on(root, "zero_allow_untested_optimizer")) {
    unsupported.push_back(
        concat("optimizer.type ", type, " with ZeRO without zero_allow_untested_optimizer"));
  }
  if (!is<LambSettings>(optimizer)) return;
  double loss_scale = 0;
  read(section(root, "fp16"), "loss_scale", loss_scale);
  if (loss_scale != 0) {
    unsupported.push_back(concat("optimizer.type ", type, " with a static fp16.loss_scale"));
  }
  const json::object& bf16 = section(root, root.contains("bf16") ? "bf16" : "bfloat16");
  if (stage == 0 && is_on(bf16, "enabled")) {
    unsupported.push_back(concat("optimizer.type ", type, " in bf16 without ZeRO"));
  }
}

}  // namespace

bool uses_fused_wrapper(const OptimizerConfig& optimizer) {
  const auto* adam = std::get_if<AdamSettings>(&optimizer.settings);
  return !optimizer.client && adam != nullptr && !adam->torch;
}

int state_tensors(const OptimizerConfig& optimizer) {
  if (const auto* sgd = std::get_if<SgdSettings>(&optimizer.settings)) {
    return sgd->momentum == 0 ? 0 : 1;
  }
  return is<AdamSettings>(optimizer) || is<LambSettings>(optimizer) ? 2 : 1;
}

int scratch_tensors(const OptimizerConfig& optimizer, double weight_decay) {
  if (is<AdagradSettings>(optimizer)) return 2;
  return is<SgdSettings>(optimizer) && weight_decay != 0 ? 1 : 0;
}

bool leaves_unused_state(const OptimizerConfig& optimizer, int stage, DType dtype) {
  if (!is<AdagradSettings>(optimizer)) return false;
  return stage == 0 ? dtype != DType::fp32 : stage < 3;
}

OptimizerConfig read_optimizer_config(const json::object& ds_config,
                                      std::vector<std::string>& unsupported) {
  OptimizerConfig optimizer;
  const json::value* value = find(ds_config, "optimizer");
  if (value == nullptr) return optimizer;
  if (!value->is_object()) fields::reject("optimizer", "object");
  const json::object& part = value->get_object();
  const std::string type = fields::read_text(part, "type", "AdamW");
  const json::object& params = section(part, "params");
  optimizer.client = false;
  if (!read_settings(type, params, optimizer)) {
    unsupported.push_back(concat("optimizer.type ", type));
    return optimizer;
  }
  read(params, "lr", optimizer.lr);
  read(params, "weight_decay", optimizer.weight_decay);
  if (is_on(part, "legacy_fusion")) unsupported.emplace_back("optimizer.legacy_fusion");
  find_unsupported_params(params, unsupported);
  find_refused(ds_config, type, optimizer, unsupported);
  return optimizer;
}

}  // namespace dstune
