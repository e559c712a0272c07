// What sets the models of Llama's kin apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/input/key_rules.hpp"
#include "core/model/llama.hpp"

namespace dstune::llama {

/// What transformers takes for a key that config.json does not have.
struct Defaults {
  std::int64_t vocab_size;
  std::int64_t hidden_size;
  std::int64_t inner_size;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;   ///< 0: as many as heads
  std::int64_t head_size;  ///< 0: hidden_size / heads
  std::int64_t positions;
  std::int64_t window;  ///< sliding_window
};

struct Description {
  std::string_view model_type;
  std::string_view title;   ///< as people write it: "Llama"
  std::string_view prefix;  ///< of class names: "LlamaAttention"
  Section section;
  Defaults defaults;
  bool always_input_biases = false;
  bool head_norms = false;
  bool windows_by_layer = false;  ///< use_sliding_window, max_window_layers and layer_types count
};

const Description& description_of(Kin kin);

}  // namespace dstune::llama
