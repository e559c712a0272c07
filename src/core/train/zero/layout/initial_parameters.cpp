#include "core/train/zero/layout/initial_parameters.hpp"

#include <cmath>
#include <string_view>

namespace dstune {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

void fill_initial(Device& device, const ModelSpec& model, const ModelParameters& parameters,
                  std::size_t index, std::int64_t first, std::uint64_t seed, Tensor out) {
  const ParameterSpec& spec = parameters.tensors[index];
  if (ends_with(spec.name, ".bias")) {
    device.fill_zero(out);
  } else if (!spec.weight_decay) {
    device.fill_constant(out, 1);
  } else {
    const bool residual = ends_with(spec.name, "c_proj.weight");
    const double shrink = residual ? std::sqrt(2.0 * static_cast<double>(model.num_layers)) : 1;
    const std::uint64_t stream = seed * 0x9e3779b97f4a7c15U + index;
    device.fill_normal(out, model.initializer_range / shrink, stream, first);
  }
}

}  // namespace dstune
