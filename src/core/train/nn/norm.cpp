#include "core/train/nn/norm.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/norms.hpp"

namespace dstune::nn {
namespace {

// A row of `value` that stands for a missing parameter; PyTorch's kernel does without it.
Buffer constant(const Tape& on, std::int64_t size, double value) {
  const DType dtype = on.context().dtype;
  Buffer row = make_buffer(on.device(), MemoryCategory::temporaries, size, dtype);
  on.run(FillConstant{row.tensor(dtype), value});
  return row;
}

// What an input's gradient is computed of, where nobody wants it and nothing was saved for it.
Value or_zeros(Value kept, const Tape& on, std::int64_t rows, std::int64_t columns) {
  if (kept) return kept;
  kept = new_value(on.device(), DType::fp32, rows, columns);
  on.run(FillZero{kept.tensor()});
  return kept;
}

// weight + offset, saved by their product; the operation adds the offset itself.
Value shifted_weight(const Tape& on, std::size_t weight, std::int64_t size) {
  Value shifted = new_value(on.device(), DType::fp32, 1, size);
  on.run(Cast{on.hooks().parameter(weight), shifted.tensor()});
  return shifted;
}

Saved save_if(bool is_needed, Tape& on, const Value& value) {
  return is_needed ? on.save(value) : Saved();
}

LayerNormSaved moments(const Value& stats) {
  const Tensor both = stats.tensor();
  const std::int64_t rows = both.numel / 2;
  return {both.slice(0, rows), both.slice(rows, rows)};
}

}  // namespace

LayerNorm::LayerNorm(const ModelNames& names, const std::string& name, double epsilon)
    : module_(names.module(name)),
      weight_(names.find_tensor(name + ".weight")),
      bias_(names.find_tensor(name + ".bias")),
      epsilon_(epsilon) {}

Value LayerNorm::operator()(Tape& on, Value x) const {
  return run_module(on, module_, std::move(x), [&](const Value& in) { return normalise(on, in); });
}

Value LayerNorm::normalise(Tape& on, const Value& x) const {
  const DType dtype = on.context().dtype;
  const std::int64_t size = x.matrix.cols;
  const bool trains_weight = weight_ && on.hooks().is_trainable(*weight_);
  const bool trains_bias = bias_ && on.hooks().is_trainable(*bias_);
  const Buffer one = weight_ ? Buffer() : constant(on, size, 1);
  const Buffer zero = bias_ ? Buffer() : constant(on, size, 0);
  Value y = new_like(on.device(), x);
  const Value stats = new_value(on.device(), DType::fp32, x.matrix.rows, 2);
  on.run(dstune::LayerNorm{.x = x.rows(),
                           .gamma = weight_ ? on.hooks().parameter(*weight_) : one.tensor(dtype),
                           .beta = bias_ ? on.hooks().parameter(*bias_) : zero.tensor(dtype),
                           .epsilon = epsilon_,
                           .saved = moments(stats),
                           .out = y.rows()});
  if (!on.records(x.needs_gradient() || trains_weight || trains_bias)) return y;
  NodeParameters trained;
  if (trains_weight) trained.add(*weight_);
  if (trains_bias) trained.add(*bias_);
  return on.record(
      std::move(y), trained,
      [this, dtype, size, trains_weight, trains_bias, node = x.node, saved_x = on.save(x),
       saved_stats = on.save(stats)](Tape& back, const Value& d) mutable {
        const Value kept_x = saved_x.take(back);
        const Value kept_stats = saved_stats.take(back);
        const Buffer ones = weight_ ? Buffer() : constant(back, size, 1);
        Value d_x = new_like(back.device(), d);
        Buffer d_gamma = back.context().gradient(size);
        Buffer d_beta = back.context().gradient(size);
        back.run(LayerNormBackward{
            .d_out = d.rows(),
            .x = kept_x.rows(),
            .gamma = weight_ ? back.hooks().parameter(*weight_) : ones.tensor(dtype),
            .saved = moments(kept_stats),
            .d_x = d_x.rows(),
            .d_gamma = d_gamma.tensor(dtype),
            .d_beta = d_beta.tensor(dtype)});
        // By each a parameter takes its gradient over.
        back.count_operators((trains_weight ? 1 : 0) + (trains_bias ? 1 : 0));
        back.give(node, std::move(d_x));
        if (trains_weight) back.give(*weight_, std::move(d_gamma), Memory::own);
        if (trains_bias) back.give(*bias_, std::move(d_beta), Memory::own);
      });
}

RmsNorm::RmsNorm(const ModelNames& names, const std::string& name, double epsilon, double offset,
                 Normalises what)
    : module_(names.module(name)),
      weight_(names.tensor(name + ".weight")),
      size_(names.shape(weight_).at(0)),
      epsilon_(epsilon),
      offset_(offset),
      what_(what) {}

Value RmsNorm::operator()(Tape& on, Value x) const {
  return run_module(on, module_, std::move(x), [&](const Value& in) { return normalise(on, in); });
}

namespace {

int rms_norm_calls(const Tape& on, int in_fp32) {
  return in_fp32 + (on.context().dtype == DType::fp32 ? 0 : kRmsNormCasts);
}

int rms_norm_backward_calls(const Tape& back, bool trains) {
  return rms_norm_calls(back, kOperatorCalls<RmsNormBackward> + (trains ? kRmsNormWeightCalls : 0));
}

}  // namespace

Value RmsNorm::normalise(Tape& on, const Value& x) const {
  const DType dtype = on.context().dtype;
  const DType inner = offset_ == 0 ? dtype : DType::fp32;
  const std::int64_t vectors = x.numel() / size_;
  const auto rows = [size = size_](const Value& value) {
    return as_matrix(value.tensor(), value.numel() / size, size);
  };
  const bool trains = on.hooks().is_trainable(weight_);
  const Value copy =
      dtype == DType::fp32 ? x.detached() : new_value(on.device(), DType::fp32, vectors, size_);
  const Value rrms = new_value(on.device(), DType::fp32, vectors, 1);
  const Value normalised = new_value(on.device(), inner, vectors, size_);
  const Value shifted = offset_ == 0 ? Value() : shifted_weight(on, weight_, size_);
  const Buffer scratch = make_buffer(on.device(), MemoryCategory::temporaries,
                                     rms_norm_scratch(dtype, x.numel()), DType::fp32);
  Value y = new_like(on.device(), x);
  on.run(dstune::RmsNorm{.x = rows(x),
                         .weight = on.hooks().parameter(weight_),
                         .epsilon = epsilon_,
                         .offset = offset_,
                         .saved = {rows(copy), rrms.tensor(), rows(normalised)},
                         .scratch = scratch.tensor(DType::fp32),
                         .out = rows(y)},
         rms_norm_calls(on, kOperatorCalls<dstune::RmsNorm>));
  const bool goes_on = x.needs_gradient();
  if (!on.records(goes_on || trains)) return y;
  NodeParameters trained;
  if (trains) trained.add(weight_);
  return on.record(
      std::move(y), trained,
      [this, dtype, inner, vectors, rows, trains, node = x.node,
       saved_x = save_if(goes_on && what_ == Normalises::input, on, x),
       saved_copy = save_if(goes_on, on, copy), saved_rrms = save_if(goes_on, on, rrms),
       saved_normalised = save_if(trains, on, normalised),
       saved_shifted = save_if(goes_on, on, shifted)](Tape& back, Value d) mutable {
        const Value kept_x = saved_x.take(back);
        const Value kept_copy = or_zeros(saved_copy.take(back), back, vectors, size_);
        const Value kept_rrms = or_zeros(saved_rrms.take(back), back, vectors, 1);
        Value kept_normalised = saved_normalised.take(back);
        const Value kept_shifted = saved_shifted.take(back);
        // The chain's last kernel may write over the gradient, if nobody else holds it.
        Value d_x = d.storage->use_count() == 1 ? d : new_like(back.device(), d);
        const Buffer room = make_buffer(back.device(), MemoryCategory::temporaries,
                                        rms_norm_backward_scratch(dtype, d.numel()), DType::fp32);
        Buffer d_weight = trains ? back.context().gradient(size_) : Buffer();
        // PyTorch's chain of kernels holds as much memory in backward in any case.
        if (!trains) kept_normalised = new_value(back.device(), inner, vectors, size_);
        back.run(
            RmsNormBackward{.d_out = rows(d),
                            .weight = back.hooks().parameter(weight_),
                            .offset = offset_,
                            .saved = {rows(kept_copy), kept_rrms.tensor(), rows(kept_normalised)},
                            .scratch = room.tensor(DType::fp32),
                            .d_x = rows(d_x),
                            .d_weight = trains ? d_weight.tensor(dtype) : Tensor{}},
            rms_norm_backward_calls(back, trains));
        d = {};
        back.give(node, std::move(d_x));
        if (trains) back.give(weight_, std::move(d_weight), Memory::own);
      });
}

}  // namespace dstune::nn
