// The device's memory-bound operations as the engines use them: each goes into the ledger.
#pragma once

#include "core/device/device.hpp"
#include "core/device/ledger.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Same operations as Device's, with the name of the pass they belong to.
class Passes {
 public:
  explicit Passes(Device& device) : device_(&device) {}

  void fill_zero(Pass pass, Tensor out) const {
    note(pass, 0, out.size());
    device_->fill_zero(out);
  }
  void copy(Pass pass, Tensor in, Tensor out) const {
    note(pass, in.size(), out.size());
    device_->copy(in, out);
  }
  void cast(Pass pass, Tensor in, Tensor out) const {
    note(pass, in.size(), out.size());
    device_->cast(in, out);
  }
  void scale(Pass pass, Tensor inout, double factor) const {
    note(pass, inout.size(), inout.size());
    device_->scale(inout, factor);
  }
  void add(Pass pass, Tensor inout, Tensor other) const {
    note(pass, inout.size() + other.size(), inout.size());
    device_->add(inout, other);
  }
  void scale_by(Pass pass, Tensor inout, Tensor factor) const {
    note(pass, inout.size(), inout.size());
    device_->scale_by(inout, factor);
  }
  void add_squares(Pass pass, Tensor in, Tensor sum) const {
    note(pass, in.size(), 0);
    device_->add_squares(in, sum);
  }
  void find_inf_or_nan(Pass pass, Tensor in, Tensor flag) const {
    note(pass, in.size(), 0);
    device_->find_inf_or_nan(in, flag);
  }
  void quantize(Tensor in, Quantization how, Tensor out, Tensor steps) const {
    note(Pass::quantize, in.size(), out.size() + steps.size());
    device_->quantize(in, how, out, steps);
  }
  void dequantize(Tensor in, int bits, Tensor steps, Tensor out) const {
    note(Pass::dequantize, in.size() + steps.size(), out.size());
    device_->dequantize(in, bits, steps, out);
  }
  void sum_quantized(Tensor in, int bits, Tensor steps, int parts, Tensor out,
                     Tensor out_steps) const {
    note(Pass::dequantize, in.size() + steps.size(), out.size() + out_steps.size());
    device_->sum_quantized(in, bits, steps, parts, out, out_steps);
  }
  void adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
            Tensor exp_avg_sq) const {
    note_update(traffic_of(step), parameter);
    device_->adam(step, gradient, parameter, exp_avg, exp_avg_sq);
  }
  void sgd(const SgdStep& step, Tensor gradient, Tensor parameter, Tensor momentum,
           Tensor decayed) const {
    note_update(traffic_of(step), parameter);
    device_->sgd(step, gradient, parameter, momentum, decayed);
  }
  void lion(const LionStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg) const {
    note_update(traffic_of(step), parameter);
    device_->lion(step, gradient, parameter, exp_avg);
  }
  void adagrad(const AdagradStep& step, Tensor gradient, Tensor parameter, Tensor sum,
               Tensor numerator, Tensor root) const {
    note_update(traffic_of(step), parameter);
    device_->adagrad(step, gradient, parameter, sum, numerator, root);
  }
  void lamb(const LambStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
            Tensor exp_avg_sq, Tensor copy) const {
    const Bytes copied = copy.numel == 0 ? 0 : size_of(copy.dtype);
    note_update(traffic_of(step, size_of(gradient.dtype), copied), parameter);
    device_->lamb(step, gradient, parameter, exp_avg, exp_avg_sq, copy);
  }

 private:
  void note(Pass pass, Bytes read, Bytes written) const {
    device_->ledger().add_pass(pass, read, written);
  }
  void note_update(UpdateTraffic per_element, Tensor parameter) const {
    const auto count = static_cast<Bytes>(parameter.numel);
    note(Pass::update, count * per_element.read, count * per_element.written);
  }

  Device* device_;
};

}  // namespace dstune
