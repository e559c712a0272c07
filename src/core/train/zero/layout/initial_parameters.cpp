#include "core/train/zero/layout/initial_parameters.hpp"

namespace dstune {

void fill_initial(Device& device, const ModelParameters& parameters, std::size_t index,
                  std::int64_t first, std::uint64_t seed, Tensor out) {
  const InitialValue& initial = parameters.tensors[index].initial;
  if (initial.stddev > 0) {
    const std::uint64_t stream = seed * 0x9e3779b97f4a7c15U + index;
    device.fill_normal(out, initial.stddev, stream, first);
  } else if (initial.constant != 0) {
    device.fill_constant(out, initial.constant);
  } else {
    device.fill_zero(out);
  }
}

}  // namespace dstune
