#include "core/train/layers/recomputation.hpp"

#include <stdexcept>

namespace dstune::layers {

void RecomputationHooks::fetch(std::size_t module) {
  if (skips_outermost_ && !outermost_) {
    outermost_ = module;
  } else {
    engine_.fetch(module);
  }
}

// What ends here is left as it is: DeepSpeed's hook behind the module's forward does not run, nor
// those of the modules around it, whose backward is under way.
void RecomputationHooks::release(std::size_t module) {
  if (last_ == module) throw RecomputationEnds();
  if (outermost_ != module) engine_.release(module);
}

void RecomputationHooks::all_is_saved(std::size_t module) {
  if (last_ == module) throw RecomputationEnds();
}

void CheckpointHooks::fetch(std::size_t module) {
  engine_.fetch(module);
  module_ = module;
  if (at_once_) saved_is_read();
}

void CheckpointHooks::saved_is_read() {
  if (!recompute_) return;
  const Recompute recompute = std::exchange(recompute_, {});
  recompute(module_);
}

void CheckpointHooks::gradient_ready(std::size_t tensor, Buffer gradient) {
  if (recompute_) throw std::logic_error("CheckpointHooks: a gradient before saved_is_read()");
  engine_.gradient_ready(tensor, std::move(gradient));
}

}  // namespace dstune::layers
