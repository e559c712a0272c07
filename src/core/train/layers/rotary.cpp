#include "core/train/layers/rotary.hpp"

#include <cmath>
#include <vector>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/rotate.hpp"

namespace dstune::layers {

namespace {

// The angles are fp32 in every precision.
std::vector<float> table_of(std::int64_t positions, const RotaryFrequencies& frequencies,
                            double (*f)(double)) {
  const std::size_t half = frequencies.values.size();
  std::vector<float> table(static_cast<std::size_t>(positions) * 2 * half);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::size_t position = i / (2 * half);
    const float angle =
        static_cast<float>(position) * static_cast<float>(frequencies.values[i % half]);
    table[i] = static_cast<float>(frequencies.scaling * f(static_cast<double>(angle)));
  }
  return table;
}

Buffer make_table(const Workspace& work, const RotaryFrequencies& frequencies,
                  double (*f)(double)) {
  const auto columns = 2 * static_cast<std::int64_t>(frequencies.values.size());
  Buffer table = make_buffer(*work.device, MemoryCategory::activations,
                             work.sequence_length * columns, work.dtype);
  work.device->write(table_of(work.sequence_length, frequencies, f), table.tensor(work.dtype));
  return table;
}

}  // namespace

Rotary::Rotary(const Workspace& work, const RotaryFrequencies& frequencies)
    : half_(static_cast<std::int64_t>(frequencies.values.size())),
      cos_(make_table(work, frequencies, [](double x) { return std::cos(x); })),
      sin_(make_table(work, frequencies, [](double x) { return std::sin(x); })) {}

Buffer Rotary::pack(const Workspace& work, const Buffer& table) const {
  if (!work.is_packed) return {};
  Buffer packed = work.activation(2 * half_);
  for (const TokenSpan& sequence : work.sequences) {
    const std::int64_t count = sequence.length * 2 * half_;
    const std::int64_t begin = sequence.begin * 2 * half_;
    work.device->run(Copy{table.tensor(work.dtype).slice(0, count),
                          packed.tensor(work.dtype).slice(begin, count)});
  }
  return packed;
}

void Rotary::arrange(const Workspace& work) {
  packed_cos_.reset();
  packed_sin_.reset();
  packed_cos_ = pack(work, cos_);
  packed_sin_ = pack(work, sin_);
}

Matrix Rotary::half_of(const Workspace& work, const Buffer& table, const Buffer& packed) const {
  return {packed ? packed.data() : table.data(), work.sequence_length, half_, work.dtype,
          2 * half_};
}

Buffer Rotary::run(const Workspace& work, const Matrix& in, const Heads& heads,
                   bool inverse) const {
  const std::int64_t columns = heads.count * heads.size;
  Buffer out = work.activation(columns);
  const Buffer scratch = make_buffer(*work.device, MemoryCategory::temporaries,
                                     rotate_scratch(work.rows() * columns), work.dtype);
  work.device->run(Rotate{.in = in,
                          .heads = heads.count,
                          .head_size = heads.size,
                          .in_stride = heads.stride,
                          .cos = half_of(work, cos_, packed_cos_),
                          .sin = half_of(work, sin_, packed_sin_),
                          .inverse = inverse,
                          .scratch = scratch.tensor(work.dtype),
                          .out = work.matrix(out, columns)});
  return out;
}

Buffer Rotary::turn(const Workspace& work, const Matrix& in, std::int64_t heads,
                    std::int64_t head_size, std::int64_t stride) const {
  return run(work, in, {heads, head_size, stride}, false);
}

Buffer Rotary::turn_back(const Workspace& work, const Buffer& d_out, std::int64_t heads,
                         std::int64_t head_size) const {
  return run(work, work.matrix(d_out, heads * head_size), {heads, head_size, head_size}, true);
}

}  // namespace dstune::layers
