// What stands on a decoder: the head of its task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/sequence_head.hpp"

namespace dstune::layers {

/// "lm_head" with the loss of next tokens, or "score" with that of sequences' labels.
class DecoderHead {
 public:
  /// @param size         h, columns of what comes out of the decoder
  /// @param tied_weight  the tensor that a language model's head shares; none: it has its own
  /// @param softcap      of a language model's logits; 0: none
  DecoderHead(const ModelSpec& spec, const ModelNames& names, std::int64_t size,
              std::optional<std::size_t> tied_weight, double softcap = 0);

  /// As Head's and SequenceHead's.
  void forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens,
               std::uint64_t seed, Tensor loss);
  /// @param[out] d_tied  empty unless the weight is tied; see Head
  Buffer backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied);

 private:
  std::variant<Head, SequenceHead> head_;
};

}  // namespace dstune::layers
