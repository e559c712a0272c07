#include "core/train/zero/reduction/gradient_sum.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/reduction/gradient_message.hpp"

namespace dstune {

void GradientSum::all_reduce(Tensor inout, const GradientScaling& scaling) const {
  const GradientMessage message(device, inout, dtype);
  if (scaling.before) device.run(MemoryPass::average, Scale{message.tensor(), *scaling.before});
  device.await(collectives.all_reduce(message.tensor(), ReduceOp::sum, Purpose::gradients));
  if (scaling.after) device.run(MemoryPass::average, Scale{message.tensor(), *scaling.after});
  message.write_back();
}

void GradientSum::reduce(Tensor inout, int root) const {
  const GradientMessage message(device, inout, dtype);
  device.await(collectives.reduce(message.tensor(), ReduceOp::sum, root, Purpose::gradients));
  if (collectives.rank() == root) message.write_back();
}

}  // namespace dstune
