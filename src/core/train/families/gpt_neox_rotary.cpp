#include "core/train/families/gpt_neox_rotary.hpp"

#include <cmath>
#include <vector>

#include "core/device/operations/rotate.hpp"

namespace dstune::gpt_neox {

namespace {

// In fp32, as transformers computes them.
template <class F>
void fill(Device& device, const Tensor& table, std::int64_t positions, std::int64_t dims,
          std::int64_t columns, double base, F f) {
  std::vector<float> values;
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto exponent =
          static_cast<double>(2 * (column % (columns / 2))) / static_cast<double>(dims);
      const auto frequency = static_cast<float>(1 / std::pow(base, exponent));
      values.push_back(f(static_cast<float>(position) * frequency));
    }
  }
  device.write(values, table);
}

}  // namespace

Rotary::Rotary(const ModelSpec& spec, const Settings& settings, const layers::Workspace& work)
    : heads_(spec.num_heads),
      head_size_(spec.head_size()),
      dims_(rotary_dims(spec, settings)),
      columns_(dims_ + dims_ % 2) {
  const std::int64_t positions = work.sequence_length;
  const auto table = [&] {
    return make_buffer(*work.device, MemoryCategory::activations, positions * columns_, work.dtype);
  };
  cos_ = table();
  sin_ = table();
  const auto write = [&](const Buffer& buffer, auto f) {
    fill(*work.device, buffer.tensor(work.dtype), positions, dims_, columns_, settings.rotary_base,
         f);
  };
  write(cos_, [](float angle) { return std::cos(angle); });
  write(sin_, [](float angle) { return std::sin(angle); });
}

Matrix Rotary::half(const layers::Workspace& work, const Buffer& table) const {
  return {table.data(), work.sequence_length, columns_ / 2, work.dtype, columns_};
}

Buffer Rotary::rotate(const layers::Workspace& work, const Heads& in, bool inverse) const {
  const std::int64_t width = heads_ * head_size_;
  Buffer out = work.activation(width);
  const Buffer scratch = make_buffer(*work.device, MemoryCategory::activations,
                                     rotate_scratch(work.rows() * width), work.dtype);
  work.device->run(Rotate{.in = in.matrix,
                          .heads = heads_,
                          .head_size = head_size_,
                          .in_stride = in.stride,
                          .cos = half(work, cos_),
                          .sin = half(work, sin_),
                          .inverse = inverse,
                          .scratch = scratch.tensor(work.dtype),
                          .out = work.matrix(out, width)});
  return out;
}

}  // namespace dstune::gpt_neox
