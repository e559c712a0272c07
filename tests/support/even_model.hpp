// A GPT-2 whose shards ZeRO++ can quantise.
#pragma once

#include "core/model/model_spec.hpp"

namespace dstune::test {

/// Every shard is a multiple of eight elements on 1, 2, 3 and 6 ranks, every matrix can be dealt
/// out to 2, 3, 4 and 6. Tensors have 48 to 6,912 elements, layers 19,056.
inline ModelSpec even_model() {
  ModelSpec model;
  model.name = "even";
  model.vocab_size = 72;
  model.max_positions = 24;
  model.hidden_size = 48;
  model.inner_size = 96;
  model.num_layers = 2;
  model.num_heads = 3;
  return model;
}

}  // namespace dstune::test
