#include "core/train/layers/masked_keys.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"

namespace dstune::layers {

// A single head is repeated as a view.
bool MaskedKeys::repeats() const {
  constexpr std::int64_t kWidestShared = 256;
  return (has_mask() || shape.head_size > kWidestShared) && shape.kv_heads > 1 &&
         shape.kv_heads < shape.heads;
}

Buffer MaskedKeys::make_mask(const Workspace& work) const {
  if (!has_mask()) return {};
  Buffer mask = work.activation(shape.sequence);
  work.device->run(FillZero{mask.tensor(work.dtype)});
  work.device->run(FillConstant{mask.tensor(work.dtype), 0});  // masked_fill_
  return mask;
}

Buffer MaskedKeys::repeated(const Workspace& work, Buffer keys) const {
  if (!repeats()) return keys;
  Buffer result = work.activation(copies() * columns());
  const Tensor from = keys.tensor(work.dtype);
  for (std::int64_t i = 0; i < copies(); ++i) {
    work.device->run(Copy{from, result.tensor(work.dtype).slice(i * from.numel, from.numel)});
  }
  return result;
}

Buffer MaskedKeys::gradient_room(const Workspace& work) const {
  Buffer room = work.activation(copies() * columns());
  const std::int64_t first = work.rows() * columns();
  const Tensor whole = room.tensor(work.dtype);
  if (repeats()) work.device->run(FillZero{whole.slice(first, whole.numel - first)});
  return room;
}

Buffer MaskedKeys::summed(const Workspace& work, Buffer d_repeated) const {
  if (!repeats()) return d_repeated;
  Buffer sum = work.activation(columns());
  work.device->run(AddBroadcastBackward{
      as_matrix(d_repeated.tensor(work.dtype), copies() * work.rows(), columns()),
      work.matrix(sum, columns())});
  return sum;
}

}  // namespace dstune::layers
