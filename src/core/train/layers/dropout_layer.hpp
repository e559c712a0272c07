// torch.nn.Dropout, or its function, that keeps its mask; nothing at all where the probability is
// 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

struct DropoutLayer {
  std::optional<std::size_t> module;  ///< none: torch.nn.functional.dropout, which no hook sees
  double probability;

  Buffer mask{};  ///< one byte per element

  /// @returns x itself if `probability` is 0
  Buffer forward(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed, Buffer x);
  /// Likewise where somebody else saves x.
  /// @returns empty if `probability` is 0: it is x itself
  Buffer forward_beside(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed,
                        const Buffer& x);

  /// Frees the mask.
  /// @returns the gradient by x; empty if `probability` is 0: it is d_y itself
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y);
};

}  // namespace dstune::layers
