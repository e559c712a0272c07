// A model's layers, one behind the other, and which of them run again in backward.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/recomputation.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Runs layers forward and back, with checkpoints as Workspace::checkpointing says: of a layer in a
/// checkpoint only the input of the first one is kept, and the rest is made again when backward
/// asks for it.
///
/// A Block keeps what its backward reads. It has `Buffer take_input()`: the x that forward got,
/// which is still there when that returns. If others than its backward hold x, it has
/// `void forget_input(const Workspace&)` too: nobody else does any more.
template <class Block>
class LayerStack {
 public:
  /// A layer as it is before forward.
  using Make = std::function<Block(const ModelNames& names, std::int64_t index)>;

  /// @param names   those of parameters that outlive the stack
  /// @param frozen  so many of the first layers keep nothing and have no backward: see
  ///                ModelNames::frozen_layers()
  LayerStack(const Workspace& work, const ModelNames& names, std::int64_t count, Make make,
             std::size_t frozen = 0)
      : work_(&work),
        make_(std::move(make)),
        frozen_(frozen),
        inputs_(static_cast<std::size_t>(count)) {
    blocks_.reserve(inputs_.size());
    for (std::int64_t index = 0; index < count; ++index) {
      blocks_.emplace_back(make_(names, index));
    }
    if (recomputes() || frozen_ > 0) names_.emplace(names);
  }

  std::size_t size() const { return blocks_.size(); }
  Block& front() { return *blocks_.front(); }
  const Block& front() const { return *blocks_.front(); }
  Block& operator[](std::size_t layer) { return *blocks_[layer]; }
  const Block& operator[](std::size_t layer) const { return *blocks_[layer]; }

  /// True: nothing of the layer outlives its forward, but the input of a checkpoint.
  bool forgets(std::size_t layer) const { return layer < frozen_ || is_recomputed(layer); }
  bool has_backward(std::size_t layer) const { return layer >= frozen_; }

  /// True: what all layers share, such as a mask, lives until their backward is over.
  bool recomputes() const { return work_->checkpointing.is_on(); }

  /// @param x    of the first layer, which its owner holds until its own forward is over
  /// @param run  (layer, ModuleHooks&, Buffer x) -> Buffer: one layer's forward
  /// @returns the last layer's output
  template <class Run>
  Buffer forward(ModuleHooks& hooks, Buffer x, const Run& run);

  /// @param d_out  gradient by what forward returned
  /// @param run    forward's
  /// @param back   (layer, ModuleHooks&, Buffer d_out) -> Buffer: one layer's backward
  /// @returns the gradient by the x of the first layer that has a backward
  template <class Run, class Back>
  Buffer backward(ModuleHooks& hooks, Buffer d_out, const Run& run, const Back& back);

 private:
  using Unit = ActivationCheckpointing::Unit;

  /// Layers [first, end): one checkpoint, or a layer without.
  struct Part {
    std::size_t first;
    std::size_t end;
  };

  bool is_recomputed(std::size_t layer) const {
    const ActivationCheckpointing& checkpointing = work_->checkpointing;
    const bool is_nth = layer % static_cast<std::size_t>(checkpointing.count) == 0;
    return checkpointing.unit == Unit::group || (checkpointing.unit == Unit::layer && is_nth);
  }
  std::size_t first_of(std::size_t layer) const {
    if (work_->checkpointing.unit != Unit::group) return layer;
    return layer - layer % static_cast<std::size_t>(work_->checkpointing.count);
  }
  /// Of what begins with `first`.
  std::size_t end_of(std::size_t first) const {
    if (work_->checkpointing.unit != Unit::group) return first + 1;
    return std::min(first + static_cast<std::size_t>(work_->checkpointing.count), size());
  }
  void forget(std::size_t layer) {
    blocks_[layer].emplace(make_(*names_, static_cast<std::int64_t>(layer)));
  }
  void forget_input(std::size_t layer) {
    if constexpr (requires(Block & block) { block.forget_input(*work_); }) {
      blocks_[layer]->forget_input(*work_);
    }
  }
  void synchronize() const {
    if (work_->checkpoints_synchronize) work_->device->host_sync(HostSync::timer);
  }

  /// @returns the last layer's output, unless it ended early
  template <class Run>
  Buffer recompute(ModuleHooks& hooks, const Part& part, std::optional<std::size_t> last,
                   const Run& run);
  template <class Run, class Back>
  Buffer checkpoint_backward(ModuleHooks& hooks, const Part& part, Buffer d_out, const Run& run,
                             const Back& back);

  const Workspace* work_;
  Make make_;
  std::size_t frozen_;
  std::optional<ModelNames> names_;
  std::vector<std::optional<Block>> blocks_;
  std::vector<Buffer> inputs_;  // of checkpoints, by their first layer
};

template <class Block>
template <class Run>
Buffer LayerStack<Block>::forward(ModuleHooks& hooks, Buffer x, const Run& run) {
  for (std::size_t layer = 0; layer < size(); ++layer) {
    const bool begins = is_recomputed(layer) && first_of(layer) == layer;
    if (begins) synchronize();
    x = run(layer, hooks, std::move(x));
    if (begins && end_of(layer) > frozen_) inputs_[layer] = blocks_[layer]->take_input();
    if (layer < frozen_ && !is_recomputed(layer)) {
      forget(layer);
    } else if (is_recomputed(layer)) {
      forget(layer);
      if (first_of(layer + 1) == layer + 1 || layer + 1 == size()) synchronize();
    } else if (layer > 0) {
      forget_input(layer);
    }
    work_->device->tick();
  }
  return x;
}

template <class Block>
template <class Run, class Back>
Buffer LayerStack<Block>::backward(ModuleHooks& hooks, Buffer d_out, const Run& run,
                                   const Back& back) {
  for (std::size_t end = size(); end > frozen_;) {
    const std::size_t first = first_of(end - 1);
    if (is_recomputed(first)) {
      d_out = checkpoint_backward(hooks, {first, end}, std::move(d_out), run, back);
    } else {
      d_out = back(first, hooks, std::move(d_out));
      work_->device->tick();
    }
    end = first;
  }
  return d_out;
}

// The input of the first layer is the checkpoint's: it lives as long as what was saved.
template <class Block>
template <class Run>
Buffer LayerStack<Block>::recompute(ModuleHooks& hooks, const Part& part,
                                    std::optional<std::size_t> last, const Run& run) {
  RecomputationHooks again(hooks, work_->checkpointing.unit == Unit::layer, last);
  Buffer x = std::move(inputs_[part.first]);
  try {
    for (std::size_t layer = part.first; layer < part.end; ++layer) {
      x = run(layer, again, std::move(x));
      if (layer > part.first) forget_input(layer);
    }
  } catch (const RecomputationEnds&) {
    return {};
  }
  return x;
}

template <class Block>
template <class Run, class Back>
Buffer LayerStack<Block>::checkpoint_backward(ModuleHooks& hooks, const Part& part, Buffer d_out,
                                              const Run& run, const Back& back) {
  const bool reentrant = work_->checkpointing.reentrant;
  synchronize();
  Buffer out;  // of a reentrant checkpoint: an argument of the backward inside
  CheckpointHooks::Recompute again = [&](std::size_t module) {
    Buffer result = recompute(hooks, part, reentrant ? std::nullopt : std::optional(module), run);
    if (reentrant) out = std::move(result);
  };
  if (reentrant && work_->checkpointing.unit == Unit::group) std::exchange(again, {})(0);
  CheckpointHooks inner(hooks, std::move(again), reentrant);
  for (std::size_t layer = part.end; layer-- > part.first;) {
    d_out = back(layer, inner, std::move(d_out));
    work_->device->tick();
  }
  synchronize();
  return d_out;
}

}  // namespace dstune::layers
