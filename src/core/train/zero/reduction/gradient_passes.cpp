#include "core/train/zero/reduction/gradient_passes.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"

namespace dstune {

namespace {

// amax, amin, isfinite of both (abs, eq, ne, mul), logical_and, logical_not, and the sum of all
// tensors' or the host's look at it. As counted in DeepSpeed's step (see kOperatorCalls).
constexpr std::uint64_t kOverflowCheckCalls = 13;

}  // namespace

// PyTorch takes the largest and the smallest element: each pass reads all elements, and allocates
// nothing that grows with the gradient.
void find_overflow_by_extremes(Device& device, Tensor gradient, Tensor flag) {
  const Seconds begin = device.now();
  device.run(MemoryPass::overflow_check, FindInfOrNan{gradient, flag});
  device.run(MemoryPass::overflow_check, FindInfOrNan{gradient, flag});
  device.host_operators_of(HostEvent::optimizer_tensor, kOverflowCheckCalls,
                           device.overlaps() ? device.now() - begin : 0);
}

// isinf and isnan each make a mask (n), of which any() is taken: 4 bytes per element and pass, the
// last of which are a copy within the mask.
void find_overflow_in_shard(Device& device, Tensor gradients, Tensor flag) {
  const std::int64_t half = gradients.numel / 2;
  const auto pass = [&] {
    const Buffer buffer =
        make_buffer(device, MemoryCategory::temporaries, gradients.numel, DType::int8);
    const Tensor mask = buffer.tensor(DType::int8);
    device.run(MemoryPass::overflow_check, FindInfOrNan{gradients, flag});
    device.run(MemoryPass::overflow_check, FillZero{mask});
    device.run(MemoryPass::overflow_check, Copy{mask.slice(0, half), mask.slice(half, half)});
  };
  pass();
  pass();
}

// No Device does arithmetic on fp64 tensors. Two fp32 copies take the same bytes and the same
// traffic (read e, write 8, read 8), and add_squares accumulates in double anyway.
void add_squares_in_double(Device& device, Tensor gradient, Tensor sum) {
  const Buffer copies =
      make_buffer(device, MemoryCategory::temporaries, 2 * gradient.numel, DType::fp32);
  const Tensor first = copies.tensor(DType::fp32).slice(0, gradient.numel);
  const Tensor second = copies.tensor(DType::fp32).slice(gradient.numel, gradient.numel);
  device.run(MemoryPass::norm, Cast{gradient, first});
  device.run(MemoryPass::norm, Copy{first, second});
  device.run(MemoryPass::norm, AddSquares{second, sum});
}

}  // namespace dstune
