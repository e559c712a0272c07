// What a device computes into a tensor of one element, as a number of the host.
#pragma once

#include <cstdint>

#include "core/device/collectives.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/scalar.hpp"

namespace dstune::test {

inline double read(Device& device, const Scalar& scalar) {
  float value = 0;
  device.read(scalar.tensor(), {&value, 1});
  return static_cast<double>(value);
}

inline double sum_of_squares(Device& device, Tensor in) {
  const Scalar sum(device);
  sum.set_zero();
  device.run(AddSquares{in, sum.tensor()});
  return read(device, sum);
}

inline bool has_inf_or_nan(Device& device, Tensor in) {
  const Scalar flag(device, DType::uint8);
  flag.set_zero();
  device.run(FindInfOrNan{in, flag.tensor()});
  return read(device, flag) != 0;
}

inline double nll_loss(Device& device, Matrix log_probs, Tensor labels) {
  const Scalar sum(device);
  sum.set_zero();
  device.run(NllLoss{.log_probs = log_probs, .labels = labels, .sum = sum.tensor()});
  return read(device, sum);
}

/// `value` of every rank, in fp32, combined.
inline double all_reduce(Device& device, Collectives& collectives, double value, ReduceOp op,
                         Purpose purpose = Purpose::other) {
  const Scalar number(device);
  const auto single = static_cast<float>(value);
  device.write({&single, 1}, number.tensor());
  device.await(collectives.all_reduce(number.tensor(), op, purpose));
  return read(device, number);
}

}  // namespace dstune::test
