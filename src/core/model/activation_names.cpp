#include "core/model/activation_names.hpp"

#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

std::string_view activation_class(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"gelu", "GELUActivation"},
      {"gelu_accurate", "AccurateGELUActivation"},
      {"gelu_fast", "FastGELUActivation"},
      {"gelu_new", "NewGELUActivation"},
      {"gelu_pytorch_tanh", "GELUTanh"},
      {"quick_gelu", "QuickGELUActivation"},
      {"relu", "ReLU"},
      {"sigmoid", "Sigmoid"},
      {"silu", "SiLUActivation"},
      {"swish", "SiLU"},
      {"tanh", "Tanh"},
  };
  for (const auto& [known, class_name] : kClasses) {
    if (known == name) return class_name;
  }
  throw std::invalid_argument(concat("no activation function is called ", name));
}

}  // namespace dstune
