// The architecture that is trained: read from a Hugging Face config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/json_fwd.hpp"
#include "core/model/fine_tuning.hpp"
#include "core/model/task.hpp"

namespace dstune {

/// The settings of a model of any family, with the names of GPT-2's config in comments. Validated
/// by the family that reads it: every dimension >= 1. A setting that the rest of the program asks
/// about has a member, all else is in `own`.
struct ModelSpec {
  std::string family = "gpt2";        ///< model_type; see core/train/families/families.hpp
  std::string name = "gpt2";          ///< preset name, file stem or "inline"; shown only
  std::int64_t vocab_size = 50257;    ///< V
  std::int64_t max_positions = 1024;  ///< n_positions
  std::int64_t hidden_size = 768;     ///< h, n_embd
  std::int64_t num_layers = 12;       ///< L, n_layer
  std::int64_t num_heads = 12;        ///< a, n_head
  std::int64_t inner_size = 3072;     ///< f, n_inner, 4h where that is null
  double layer_norm_epsilon = 1e-5;   ///< layer_norm_epsilon
  double initializer_range = 0.02;    ///< initializer_range
  double embedding_dropout = 0;       ///< embd_pdrop; 0 unless dstune.dropout is true
  double attention_dropout = 0;       ///< attn_pdrop; likewise
  double residual_dropout = 0;        ///< resid_pdrop; likewise
  double classifier_dropout = 0;      ///< before the classifier of sequences; likewise
  Task task = Task::causal_lm;        ///< one of the family's
  /// dstune.expert_imbalance: tokens go to experts by lot (ExpertDraw), not as the router says.
  std::optional<double> expert_imbalance = std::nullopt;
  std::int64_t target_length = 0;  ///< of seq2seq_lm; 0: as long as its source
  /// The settings that only this family has: a JSON object with keys of its config.json, every
  /// value that counts named, made by the family's read() and read by nobody else.
  std::string own = "{}";
  FineTuning fine_tuning = {};  ///< what of it is trained

  std::int64_t head_size() const { return hidden_size / num_heads; }
  /// Tokens of the target that belongs to a sequence; 0 for tasks without targets.
  std::int64_t target_tokens(std::int64_t sequence_length) const {
    if (task != Task::seq2seq_lm) return 0;
    return target_length == 0 ? sequence_length : target_length;
  }
  bool operator==(const ModelSpec&) const = default;
};

/// The text form of wire, journal and resume: an object of Hugging Face's keys.
json::object to_json(const ModelSpec& spec);
/// Inverse of to_json; trusts its input (made by to_json). @throws std::invalid_argument if it is
/// not
ModelSpec model_spec_from_json(const json::object& object);

}  // namespace dstune
