// The layers on top of a decoder: the head of its task and the loss.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/losses/causal_loss.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::nn {

/// "lm_head" with the loss of next tokens as BatchContext::loss says, or "score" with the loss of
/// sequences' labels. The latter is GenericForSequenceClassification of transformers 5.23, which
/// makes logits of every token and uses those of each sequence's last one. transformers runs some
/// kernels on token numbers to find the last token that is no padding; they are not run here.
class DecoderHead {
 public:
  /// @param tied_weight  the tensor that a language model's head shares; none: it has its own
  /// @param softcap      the cap of a language model's logits; 0: none
  DecoderHead(const ModelSpec& spec, const ModelNames& names,
              std::optional<std::size_t> tied_weight, double softcap = 0);

  /// A head of the module `name` with a weight of its own, and the loss of next tokens.
  DecoderHead(const ModelNames& names, const std::string& name);

  /// Adds the mean to input.loss.
  /// @param x       (M, h)
  /// @param factor  backward gives the gradients of `factor` * the loss, and reads it then
  /// @returns a value that has the loss's node
  Value operator()(Tape& on, const Value& x, const StepInput& input, const double& factor);

 private:
  Value causal_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                    const double& factor);

  std::variant<LmHead, Linear> head_;
  Value held_logits_;  // which the training loop holds until the next forward is over
};

}  // namespace dstune::nn
