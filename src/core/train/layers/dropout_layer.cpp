#include "core/train/layers/dropout_layer.hpp"

#include <utility>

#include "core/device/operations/dropout.hpp"

namespace dstune::layers {

namespace {

std::int64_t columns_of(const Workspace& work, const Buffer& rows) {
  return rows.tensor(work.dtype).numel / work.rows();
}

}  // namespace

Buffer DropoutLayer::forward(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed,
                             Buffer x) {
  Buffer y = forward_beside(work, hooks, seed, x);
  return y ? std::move(y) : std::move(x);
}

Buffer DropoutLayer::forward_beside(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed,
                                    const Buffer& x) {
  return inside_if_any(hooks, module, [&]() -> Buffer {
    if (probability == 0) return {};
    const std::int64_t columns = columns_of(work, x);
    mask = work.mask(columns);
    Buffer y = work.activation(columns);
    work.device->run(Dropout{.in = x.tensor(work.dtype),
                             .probability = probability,
                             .seed = seed,
                             .mask = mask.tensor(DType::int8),
                             .out = y.tensor(work.dtype)});
    return y;
  });
}

Buffer DropoutLayer::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y) {
  return inside_if_any(hooks, module, [&]() -> Buffer {
    if (probability == 0) return {};
    hooks.saved_is_read();
    Buffer d_x = work.activation(columns_of(work, d_y));
    work.device->run(DropoutBackward{.d_out = d_y.tensor(work.dtype),
                                     .probability = probability,
                                     .mask = mask.tensor(DType::int8),
                                     .d_in = d_x.tensor(work.dtype)});
    mask.reset();
    return d_x;
  });
}

}  // namespace dstune::layers
