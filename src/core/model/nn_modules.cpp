#include "core/model/nn_modules.hpp"

#include <utility>

namespace dstune {

std::size_t add_nn_linear(ModelBuilder& builder, std::string name, std::size_t parent,
                          std::int64_t inputs, std::int64_t outputs, bool has_bias, double stddev) {
  const std::size_t module = builder.add_module(std::move(name), "Linear", parent);
  builder.add_tensor(module, "weight", {outputs, inputs}, {.stddev = stddev});
  if (has_bias) builder.add_tensor(module, "bias", {outputs}, {});
  return module;
}

}  // namespace dstune
