#include "core/config/deepspeed/optimizer_checks.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

struct OptimizerType {
  std::string_view name;
  bool any_case;            ///< DeepSpeed's own; torch.optim's classes are spelt exactly
  std::string_view params;  ///< separated by spaces; empty: not known here
};

constexpr std::string_view kAdam =
    "lr betas eps weight_decay bias_correction adam_w_mode torch_adam amsgrad set_grad_none "
    "foreach "
    "maximize capturable differentiable fused decoupled_weight_decay fp32_optimizer_states";

constexpr OptimizerType kTypes[] = {
    {"Adam", true, kAdam},
    {"AdamW", true, kAdam},
    {"Adagrad", true,
     "lr lr_decay weight_decay initial_accumulator_value eps foreach maximize differentiable fused "
     "amsgrad fp32_optimizer_states"},
    {"Lamb", true,
     "lr bias_correction betas eps eps_inside_sqrt weight_decay max_coeff min_coeff amsgrad"},
    {"Lion", true, "lr betas weight_decay set_grad_none fp32_optimizer_states"},
    {"SGD", false,
     "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"},
    {"OneBitAdam", true, ""},
    {"ZeroOneAdam", true, ""},
    {"OneBitLamb", true, ""},
    {"MuAdam", true, ""},
    {"MuAdamW", true, ""},
    {"MuSGD", true, ""},
    {"Muon", true, ""},
    {"Adadelta", false, ""},
    {"Adafactor", false, ""},
    {"Adamax", false, ""},
    {"ASGD", false, ""},
    {"LBFGS", false, ""},
    {"NAdam", false, ""},
    {"RAdam", false, ""},
    {"RMSprop", false, ""},
    {"Rprop", false, ""},
    {"SparseAdam", false, ""},
};

const OptimizerType* find_type(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const OptimizerType& type) {
        return type.any_case ? lower(type.name) == lower(name) : type.name == name;
      });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string nearest_type(std::string_view name) {
  std::vector<std::string> known;
  for (const OptimizerType& type : kTypes) {
    if (lower(type.name) == lower(name)) return std::string(type.name);
    known.emplace_back(type.name);
  }
  return did_you_mean(name, known);
}

void check_params(const OptimizerType& type, const json::object& params, Problems& problems) {
  if (type.params.empty()) return;
  const std::vector<std::string> known = split(type.params, ' ');
  for (const auto& member : params) {
    const std::string_view key(member.key());
    if (key == "max_grad_norm" || std::find(known.begin(), known.end(), key) != known.end()) {
      continue;
    }
    problems.add(child("/optimizer/params", key),
                 concat("is not a parameter of ", type.name, suggestion(key, known)));
  }
}

bool is_beta(const json::value& value) {
  return value.is_number() && value.to_number<double>() >= 0 && value.to_number<double>() < 1;
}

void check_betas(const json::object& params, Problems& problems) {
  const auto* const betas = params.if_contains("betas");
  if (betas == nullptr || !betas->is_array()) return;
  const auto& list = betas->get_array();
  if (list.size() == 2 && is_beta(list[0]) && is_beta(list[1])) return;
  problems.add("/optimizer/params/betas", concat("is ", to_json_text(*betas, 0).substr(0, 40),
                                                 "; accepted: a list of two numbers >= 0 and < 1"));
}

bool is_on(const json::object& params, std::string_view key) {
  const auto* const value = params.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

double number(const json::object& params, std::string_view key) {
  const auto* const value = params.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

// torch.optim.SGD refuses nesterov without momentum, and with dampening.
void check_nesterov(const json::object& params, Problems& problems) {
  if (!is_on(params, "nesterov")) return;
  if (number(params, "momentum") > 0 && number(params, "dampening") == 0) return;
  problems.add("/optimizer/params/nesterov", "is true; it needs momentum > 0 and dampening 0");
}

}  // namespace

void check_optimizer(const json::object& optimizer, Problems& problems) {
  const auto* const type = optimizer.if_contains("type");
  if (type == nullptr) {
    problems.add("/optimizer/type", "is missing; accepted: a name such as \"AdamW\"");
  }
  const bool has_name = type != nullptr && type->is_string();
  const std::string name = has_name ? json::value_to<std::string>(*type) : "AdamW";
  const OptimizerType* const known = find_type(name);
  const std::string near = known == nullptr ? nearest_type(name) : "";
  if (!near.empty()) {
    problems.add("/optimizer/type",
                 concat("is ", in_quotes(name), "; did you mean ", in_quotes(near), "?"));
  }
  const auto* const found = optimizer.if_contains("params");
  const auto* const params = found == nullptr ? nullptr : found->if_object();
  if (params == nullptr) return;
  if (params->contains("max_grad_norm")) {
    problems.add("/optimizer/params/max_grad_norm",
                 "is not accepted by DeepSpeed; write gradient_clipping at the top instead");
  }
  check_betas(*params, problems);
  check_nesterov(*params, problems);
  if (known != nullptr) check_params(*known, *params, problems);
}

}  // namespace dstune
