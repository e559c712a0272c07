// The device's memory-bound operations as the engines use them: each goes into the ledger.
#pragma once

#include "core/train/device.hpp"
#include "core/train/ledger.hpp"
#include "core/train/tensor.hpp"

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
  double sum_of_squares(Pass pass, Tensor in) const {
    note(pass, in.size(), 0);
    return device_->sum_of_squares(in);
  }
  bool has_inf_or_nan(Pass pass, Tensor in) const {
    note(pass, in.size(), 0);
    return device_->has_inf_or_nan(in);
  }
  void adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
            Tensor exp_avg_sq) const {
    note(Pass::update, 4 * parameter.size(), 3 * parameter.size());
    device_->adam(step, gradient, parameter, exp_avg, exp_avg_sq);
  }

 private:
  void note(Pass pass, Bytes read, Bytes written) const {
    device_->ledger().add_pass(pass, read, written);
  }

  Device* device_;
};

}  // namespace dstune
