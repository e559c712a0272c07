// Hooks of a checkpoint: between layers whose forward runs again in backward and the engine.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "core/train/layers/module_hooks.hpp"

namespace dstune::layers {

/// Thrown out of a forward that runs again when nothing is left to save:
/// torch.utils.checkpoint's _StopRecomputationError.
struct RecomputationEnds {};

/// Of a forward that runs again.
class RecomputationHooks final : public ModuleHooks {
 public:
  /// @param skips_outermost  the checkpoint is inside its layer, whose own hooks do not run again
  /// @param last             ends where this module has saved what its backward reads
  RecomputationHooks(ModuleHooks& engine, bool skips_outermost, std::optional<std::size_t> last)
      : engine_(engine), skips_outermost_(skips_outermost), last_(last) {}

  void fetch(std::size_t module) override;
  /// @throws RecomputationEnds
  void release(std::size_t module) override;
  /// @throws RecomputationEnds
  void all_is_saved(std::size_t module) override;
  Tensor parameter(std::size_t tensor) const override { return engine_.parameter(tensor); }
  bool is_trainable(std::size_t tensor) const override { return engine_.is_trainable(tensor); }
  void gradient_ready(std::size_t tensor, Buffer gradient) override {
    engine_.gradient_ready(tensor, std::move(gradient));
  }

 private:
  ModuleHooks& engine_;
  bool skips_outermost_;
  std::optional<std::size_t> outermost_;
  std::optional<std::size_t> last_;
};

/// Of the backward of what ran through a checkpoint: has forward run again as soon as what it saved
/// is read.
class CheckpointHooks final : public ModuleHooks {
 public:
  /// Runs forward again. `module` is the one whose backward asks.
  using Recompute = std::function<void(std::size_t module)>;

  /// @param at_once  already when the first module's backward begins
  CheckpointHooks(ModuleHooks& engine, Recompute recompute, bool at_once)
      : engine_(engine), recompute_(std::move(recompute)), at_once_(at_once) {}

  void fetch(std::size_t module) override;
  void release(std::size_t module) override { engine_.release(module); }
  void saved_is_read() override;
  Tensor parameter(std::size_t tensor) const override { return engine_.parameter(tensor); }
  bool is_trainable(std::size_t tensor) const override { return engine_.is_trainable(tensor); }
  /// @throws std::logic_error  if a layer's backward computes before saved_is_read()
  void gradient_ready(std::size_t tensor, Buffer gradient) override;

 private:
  ModuleHooks& engine_;
  Recompute recompute_;  // empty once it has run
  bool at_once_;
  std::size_t module_ = 0;  // the last that was fetched
};

}  // namespace dstune::layers
