#include "core/train/layers/tied_gradient.hpp"

#include "core/device/operations/add.hpp"
#include "core/train/layers/losses/loss.hpp"

namespace dstune::layers {

Buffer sum_of_tied(const Workspace& work, Buffer of_head, Buffer of_embedding) {
  if (!of_head) return of_embedding;
  const Tensor sum = of_head.tensor(work.dtype);
  Buffer third;
  if (weight_gradient_is_view(work)) third = work.gradient(sum.numel);
  work.device->run(Add{sum, of_embedding.tensor(work.dtype)});
  return of_head;
}

}  // namespace dstune::layers
