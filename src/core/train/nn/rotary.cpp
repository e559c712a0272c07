#include "core/train/nn/rotary.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/nn/attention.hpp"

namespace dstune::nn {
namespace {

using layers::Workspace;

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

Value Rotary::turn(const Workspace& work, const Value& x, std::int64_t heads, bool inverse) const {
  const Heads in = heads_of(x, heads);
  const std::int64_t size = x.step == 0 ? in.stride : x.matrix.cols;
  Value out = new_value(*work.device, work.dtype, x.matrix.rows, heads * size);
  const Buffer scratch = make_buffer(*work.device, MemoryCategory::temporaries,
                                     rotate_scratch(out.numel()), work.dtype);
  work.device->run(Rotate{.in = in.matrix,
                          .heads = heads,
                          .head_size = size,
                          .in_stride = in.stride,
                          .cos = half_of(work, cos_, packed_cos_),
                          .sin = half_of(work, sin_, packed_sin_),
                          .inverse = inverse,
                          .scratch = scratch.tensor(work.dtype),
                          .out = out.matrix});
  return out;
}

Value Rotary::operator()(Tape& on, const Value& x, std::int64_t heads) const {
  Value out = turn(on.work(), x, heads, false);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [this, heads, node = x.node](Tape& back, const Value& d) {
    back.give(node, turn(back.work(), d, heads, true));
  });
}

}  // namespace dstune::nn
