#include "core/train/zero/layout/initial_parameters.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/random.hpp"

namespace dstune {

void fill_initial(Device& device, const ModelParameters& parameters, std::size_t index,
                  std::int64_t first, std::uint64_t seed, Tensor out) {
  const InitialValue& initial = parameters.tensors[index].initial;
  if (initial.stddev > 0) {
    const std::uint64_t stream = seed * 0x9e3779b97f4a7c15U + index;
    device.run(
        FillNormal{.out = out, .stddev = initial.stddev, .seed = stream, .first_index = first});
  } else if (initial.constant != 0) {
    device.run(FillConstant{out, initial.constant});
  } else {
    device.run(FillZero{out});
  }
}

}  // namespace dstune
