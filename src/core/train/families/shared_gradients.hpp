// Gradients of a module that one forward has used twice.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "core/train/layers/module_hooks.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune {

/// Hooks of which backward is told twice that a gradient is complete: only the second time it is,
/// and both are added up.
class SharedGradients final : public ModuleHooks {
 public:
  /// @param work, hooks  must outlive it
  SharedGradients(const layers::Workspace& work, ModuleHooks& hooks) : work_(work), hooks_(hooks) {}

  void fetch(std::size_t module) override { hooks_.fetch(module); }
  void release(std::size_t module) override { hooks_.release(module); }
  Tensor parameter(std::size_t tensor) const override { return hooks_.parameter(tensor); }
  bool is_trainable(std::size_t tensor) const override { return hooks_.is_trainable(tensor); }
  void all_is_saved(std::size_t module) override { hooks_.all_is_saved(module); }
  void saved_is_read() override { hooks_.saved_is_read(); }
  void gradient_ready(std::size_t tensor, Buffer gradient) override {
    const auto [first, is_new] = first_.try_emplace(tensor);
    if (is_new) {
      first->second = std::move(gradient);
    } else {
      hooks_.gradient_ready(
          tensor, layers::sum_of_tied(work_, std::move(first->second), std::move(gradient)));
    }
  }

 private:
  const layers::Workspace& work_;
  ModuleHooks& hooks_;
  std::map<std::size_t, Buffer> first_;
};

}  // namespace dstune
