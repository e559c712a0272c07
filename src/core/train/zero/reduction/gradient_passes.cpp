#include "core/train/zero/reduction/gradient_passes.hpp"

#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/norm_and_overflow.hpp"

namespace dstune {

// PyTorch makes: copy to fp32 (4 n, none if it is fp32), isnan, isinf and their union (n each), the
// union as fp32 (4 n), its maximum: 28 bytes of traffic per element of 16 bit. The Device has no
// masks, so that checks, a second fp32 copy and two bytes written stand in for their traffic.
void find_overflow_like_zero(Device& device, Tensor gradient, Tensor flag) {
  Buffer copy;
  Tensor values = gradient;
  if (gradient.dtype != DType::fp32) {
    copy = make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
    values = copy.tensor(DType::fp32);
    device.run(Pass::overflow_check, Cast{gradient, values});
  }
  const Buffer masks =
      make_buffer(device, MemoryCategory::temporaries, 3 * gradient.numel, DType::int8);
  const Buffer flags =
      make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
  device.run(Pass::overflow_check, FindInfOrNan{values, flag});
  device.run(Pass::overflow_check, FindInfOrNan{values, flag});
  device.run(Pass::overflow_check,
             FillZero{masks.tensor(DType::int8).slice(0, 2 * gradient.numel)});
  device.run(Pass::overflow_check, Copy{values, flags.tensor(DType::fp32)});
  device.run(Pass::overflow_check, FindInfOrNan{flags.tensor(DType::fp32), flag});
}

void find_overflow_like_wrapper(Device& device, Tensor gradient, Tensor flag) {
  const Buffer values =
      make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
  device.run(Pass::overflow_check, Cast{gradient, values.tensor(DType::fp32)});
  device.run(Pass::overflow_check, FindInfOrNan{values.tensor(DType::fp32), flag});
}

// isinf and isnan, each into a mask (n) of which any() is taken: 4 bytes per element and pass, the
// last of them a copy within the mask.
void find_overflow_in_shard(Device& device, Tensor gradients, Tensor flag) {
  const std::int64_t half = gradients.numel / 2;
  const auto pass = [&] {
    const Buffer buffer =
        make_buffer(device, MemoryCategory::temporaries, gradients.numel, DType::int8);
    const Tensor mask = buffer.tensor(DType::int8);
    device.run(Pass::overflow_check, FindInfOrNan{gradients, flag});
    device.run(Pass::overflow_check, FillZero{mask});
    device.run(Pass::overflow_check, Copy{mask.slice(0, half), mask.slice(half, half)});
  };
  pass();
  pass();
}

// No Device has fp64 tensors. Two fp32 copies take the same bytes and the same traffic (read e,
// write 8, read 8), and add_squares accumulates in double anyway.
void add_squares_in_double(Device& device, Tensor gradient, Tensor sum) {
  const Buffer copies =
      make_buffer(device, MemoryCategory::temporaries, 2 * gradient.numel, DType::fp32);
  const Tensor first = copies.tensor(DType::fp32).slice(0, gradient.numel);
  const Tensor second = copies.tensor(DType::fp32).slice(gradient.numel, gradient.numel);
  device.run(Pass::norm, Cast{gradient, first});
  device.run(Pass::norm, Copy{first, second});
  device.run(Pass::norm, AddSquares{second, sum});
}

}  // namespace dstune
