#include "tests/oracle/activation_memory.hpp"

#include <algorithm>

namespace dstune::oracle {

// All sizes are bytes; e is the size of an element, M = rows.
ActivationMemory predict_activations(const ModelSpec& model, std::int64_t micro_batch,
                                     std::int64_t sequence_length, DType dtype,
                                     std::int64_t attention_workspace) {
  const auto rows = static_cast<Bytes>(micro_batch * sequence_length);
  const Bytes hidden = rows * static_cast<Bytes>(model.hidden_size);  // elements of (M, h)
  const Bytes eh = size_of(dtype) * hidden;
  const Bytes ef = size_of(dtype) * rows * static_cast<Bytes>(model.inner_size);
  const Bytes fp32_vocab = 4 * rows * static_cast<Bytes>(model.vocab_size);
  const Bytes logits = size_of(dtype) * rows * static_cast<Bytes>(model.vocab_size);
  const Bytes upcast = dtype == DType::fp32 ? 0 : fp32_vocab;
  const Bytes lse = 4 * rows * static_cast<Bytes>(model.num_heads);
  const Bytes stats = 8 * rows;
  const Bytes labels = 8 * rows;
  const auto length = static_cast<Bytes>(sequence_length);
  const Bytes positions = 8 * length;
  // What is looked up for tokens and positions lives until the transformer returns.
  const Bytes embedded = eh + size_of(dtype) * length * static_cast<Bytes>(model.hidden_size);
  const Bytes residual_mask = model.residual_dropout > 0 ? hidden : 0;
  const Bytes embedding_mask = model.embedding_dropout > 0 ? hidden : 0;
  const Bytes scratch = 4 * static_cast<Bytes>(attention_workspace);

  const Bytes layer = 8 * eh + 5 * ef + lse + 2 * stats + 2 * residual_mask;
  const Bytes blocks = static_cast<Bytes>(model.num_layers) * layer + embedding_mask + positions;
  const Bytes before_head = blocks + 2 * eh + stats;  // ln_f's input and output
  const Bytes dropped = residual_mask > 0 ? eh - residual_mask : 0;
  return {.saved = before_head + labels + fp32_vocab,
          .peak = std::max({
              before_head + embedded,  // ln_f
              // last block: its sum, beside what attention and MLP gave, locals of its forward
              blocks + 3 * eh + embedded,
              before_head + labels + logits + upcast + fp32_vocab,  // log-softmax
              before_head + labels + 2 * fp32_vocab,                // its gradient arrives
              before_head + 3 * fp32_vocab,                         // the logits' gradient, fp32
              before_head + logits + eh,                            // the head's two products
              blocks + eh + dropped + ef,                           // last block: down projection
              // last block: attention, when its MLP is gone
              blocks + 3 * eh + scratch - 2 * residual_mask - 5 * ef - stats,
          })};
}

}  // namespace dstune::oracle
