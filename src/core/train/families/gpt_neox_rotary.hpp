// The angles by which GPT-NeoX rotates queries and keys.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/model/gpt_neox.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt_neox {

/// cos and sin of position * rotary_base^(-2 j / rotary_dims), a pair of tensors (s, r) in which
/// both halves of the columns are the same, as GPTNeoXRotaryEmbedding makes them. It makes them
/// anew in every forward, a few kernels on a thousandth of a layer's data; here they are made once.
class Rotary {
 public:
  Rotary(const ModelSpec& spec, const Settings& settings, const layers::Workspace& work);

  /// Rotates heads into a dense buffer (M, heads * head_size).
  /// @param inverse  the other way: the gradient
  Buffer rotate(const layers::Workspace& work, const Heads& in, bool inverse) const;

 private:
  Matrix half(const layers::Workspace& work, const Buffer& table) const;

  std::int64_t heads_;
  std::int64_t head_size_;
  std::int64_t dims_;     ///< of the exponents
  std::int64_t columns_;  ///< r: even
  Buffer cos_;
  Buffer sin_;
};

}  // namespace dstune::gpt_neox
