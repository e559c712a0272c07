#include "core/train/zero/reduction/gradient_sum.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

GradientScaling configured_scaling(const StepConfig& config, int ranks) {
  if (config.sum_gradients || config.prescale_gradients) return division_first(config, ranks);
  GradientScaling scaling;
  const double factor = config.gradient_predivide_factor;
  if (factor != 1) scaling.before = 1 / factor;
  if (factor != ranks) scaling.after = factor / ranks;
  return scaling;
}

GradientScaling division_first(const StepConfig& config, int ranks) {
  if (config.sum_gradients) return {};
  return {.before = 1.0 / ranks, .after = std::nullopt};
}

namespace {

/// The tensor that a collective is given in the place of `original`: the original itself if it has
/// the type of communication, otherwise a copy of it in that type (category temporaries). One pass
/// makes the copy and one brings the result back, with (e + e_c) bytes per element each.
class Message {
 public:
  Message(Device& device, Tensor original, DType dtype)
      : device_(device), original_(original), tensor_(original) {
    if (original.dtype == dtype) return;
    copy_ = make_buffer(device, MemoryCategory::temporaries, original.numel, dtype);
    tensor_ = copy_.tensor(dtype);
    device.run(MemoryPass::message_cast, Cast{original, tensor_});
  }

  Tensor tensor() const { return tensor_; }
  /// Brings the result back into the original; does nothing if the original itself was sent.
  void write_back() const {
    if (copy_) device_.run(MemoryPass::message_cast, Cast{tensor_, original_});
  }

 private:
  Device& device_;
  Tensor original_;
  Buffer copy_;
  Tensor tensor_;
};

}  // namespace

void GradientSum::all_reduce(Tensor inout, const GradientScaling& scaling, const Take& take) const {
  const Message message(device, inout, dtype);
  if (scaling.before) device.run(MemoryPass::average, Scale{message.tensor(), *scaling.before});
  device.await(collectives.all_reduce(message.tensor(), ReduceOp::sum, Purpose::gradients));
  if (scaling.after) device.run(MemoryPass::average, Scale{message.tensor(), *scaling.after});
  message.write_back();
  if (take) take(message.tensor());
}

void GradientSum::reduce(Tensor inout, int root, const Take& take) const {
  const Message message(device, inout, dtype);
  device.await(collectives.reduce(message.tensor(), ReduceOp::sum, root, Purpose::gradients));
  if (collectives.rank() != root) return;
  message.write_back();
  if (take) take(message.tensor());
}

}  // namespace dstune
