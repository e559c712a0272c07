#include "core/train/nn/rotary.hpp"

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/nn/attention/attention.hpp"

namespace dstune::nn {
namespace {

// The angles are fp32 in every precision.
void fill(std::span<float> table, const RotaryFrequencies& frequencies, double (*f)(double)) {
  const std::size_t half = frequencies.values.size();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::size_t position = i / (2 * half);
    const float angle =
        static_cast<float>(position) * static_cast<float>(frequencies.values[i % half]);
    table[i] = static_cast<float>(frequencies.scaling * f(static_cast<double>(angle)));
  }
}

// On a device without contents nobody reads the numbers, whose cosines would take longer than the
// rest of a dry step.
Buffer make_table(const BatchContext& context, const RotaryFrequencies& frequencies,
                  double (*f)(double)) {
  const auto columns = 2 * static_cast<std::int64_t>(frequencies.values.size());
  const std::int64_t count = context.sequence_length * columns;
  Buffer table = make_buffer(*context.device, MemoryCategory::activations, count, context.dtype);
  const auto size = static_cast<std::size_t>(count);
  const auto values = std::make_unique_for_overwrite<float[]>(size);
  if (context.device->computes()) fill({values.get(), size}, frequencies, f);
  context.device->write({values.get(), size}, table.tensor(context.dtype));
  return table;
}

}  // namespace

Rotary::Rotary(const BatchContext& context, const RotaryFrequencies& frequencies)
    : half_(static_cast<std::int64_t>(frequencies.values.size())),
      cos_(make_table(context, frequencies, [](double x) { return std::cos(x); })),
      sin_(make_table(context, frequencies, [](double x) { return std::sin(x); })) {}

Buffer Rotary::pack(const BatchContext& context, const Buffer& table) const {
  if (!context.is_packed) return {};
  Buffer packed = make_buffer(*context.device, MemoryCategory::activations,
                              context.rows() * 2 * half_, context.dtype);
  for (const TokenSpan& sequence : context.sequences) {
    const std::int64_t count = sequence.length * 2 * half_;
    const std::int64_t begin = sequence.begin * 2 * half_;
    context.device->run(Copy{table.tensor(context.dtype).slice(0, count),
                             packed.tensor(context.dtype).slice(begin, count)});
  }
  return packed;
}

void Rotary::arrange(const BatchContext& context) {
  packed_cos_.reset();
  packed_sin_.reset();
  packed_cos_ = pack(context, cos_);
  packed_sin_ = pack(context, sin_);
}

Matrix Rotary::half_of(const BatchContext& context, const Buffer& table,
                       const Buffer& packed) const {
  return {packed ? packed.data() : table.data(), context.sequence_length, half_, context.dtype,
          2 * half_};
}

Value Rotary::turn(const Tape& on, const Value& x, std::int64_t heads, bool inverse) const {
  const BatchContext& context = on.context();
  const Heads in = heads_of(x, heads);
  const std::int64_t size = x.step == 0 ? in.stride : x.matrix.cols;
  Value out = new_value(*context.device, context.dtype, x.matrix.rows, heads * size);
  const Buffer scratch = make_buffer(*context.device, MemoryCategory::temporaries,
                                     rotate_scratch(out.numel()), context.dtype);
  on.run(Rotate{.in = in.matrix,
                .heads = heads,
                .head_size = size,
                .in_stride = in.stride,
                .cos = half_of(context, cos_, packed_cos_),
                .sin = half_of(context, sin_, packed_sin_),
                .inverse = inverse,
                .scratch = scratch.tensor(context.dtype),
                .out = out.matrix});
  return out;
}

Value Rotary::operator()(Tape& on, const Value& x, std::int64_t heads) const {
  Value out = turn(on, x, heads, false);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [this, heads, node = x.node](Tape& back, const Value& d) {
    back.give(node, turn(back, d, heads, true));
  });
}

}  // namespace dstune::nn
