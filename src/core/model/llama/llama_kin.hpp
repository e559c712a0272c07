// The properties that set the models of Llama's kin apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/input/key_rules.hpp"
#include "core/model/llama/llama.hpp"

namespace dstune::llama {

/// The values that transformers takes for keys that config.json does not have.
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

/// Which layers have a window.
enum class Windows {
  none,
  all,             ///< if there is a sliding_window
  on_request,      ///< use_sliding_window: those of layer_types, or from max_window_layers on
  alternating,     ///< those of layer_types, or all but every window_pattern-th
  every_other,     ///< use_sliding_window: those of layer_types, or the first, third ... below
                   ///< max_window_layers
  all_on_request,  ///< use_sliding_window
};

struct Description {
  std::string_view model_type;
  std::string_view title;           ///< as people write it: "Llama"
  std::string_view prefix;          ///< of class names: "LlamaAttention"
  std::string_view body = "Model";  ///< the rest of the body's
  Section section;
  Defaults defaults;
  bool always_input_biases = false;
  bool head_norms = false;
  Windows windows = Windows::none;
  std::int64_t window_pattern = 0;  ///< sliding_window_pattern
  bool is_gemma = false;            ///< see LlamaSettings
  bool post_norms = false;          ///< likewise
  bool is_phi = false;              ///< likewise
  bool scales_by_scalar = false;    ///< query_pre_attn_scalar; hidden_activation is its key
  double score_cap = 0;             ///< attn_logit_softcapping
  double logit_cap = 0;             ///< final_logit_softcapping
  bool has_windowed_rope = false;   ///< rope_local_base_freq, or rope_parameters of both kinds
  bool has_experts = false;
  double theta = 0;       ///< default rope_theta; 0: the usual one
  double epsilon = 1e-6;  ///< default rms_norm_eps
  Kin kin = Kin::llama;   ///< its own
};

const Description& description_of(Kin kin);

}  // namespace dstune::llama
