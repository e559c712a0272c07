// DeBERTa v2 and v3 as data: what their config.json may say, their tensors and modules, their
// FLOPs. They are those of transformers 5.23.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::deberta {

/// The settings of config.json beside the members of ModelSpec; ModelSpec::own is made of it, so
/// that bert::settings_of() reads `common` from there.
struct DebertaSettings {
  bert::Settings common{};
  std::int64_t embedding_size = 0;         ///< e, columns of the embeddings
  bool position_biased_input = true;       ///< positions have an embedding of their own
  bool relative_attention = false;         ///< scores by relative positions are added
  bool c2p = false;                        ///< pos_att_type: of queries with positions
  bool p2c = false;                        ///< of keys with positions
  bool share_att_key = false;              ///< positions are projected as queries and keys are
  std::int64_t position_buckets = 0;       ///< 0: a row for every distance
  std::int64_t most_distance = 0;          ///< max_relative_positions, or max_position_embeddings
  bool norm_rel_ebd = false;               ///< the table of relative positions is normed
  std::int64_t conv_kernel_size = 0;       ///< behind the first layer; 0: none
  std::string conv_activation = "tanh";    ///< conv_act
  std::string pooler_activation = "gelu";  ///< pooler_hidden_act
  bool loss_in_fp32 = true;                ///< of a classifier: without problem_type

  /// Half the rows of the table of relative positions.
  std::int64_t span() const { return position_buckets > 0 ? position_buckets : most_distance; }
  /// How many kinds of scores are added up: what heads' scores are scaled by has this factor.
  int scores() const { return 1 + (c2p ? 1 : 0) + (p2c ? 1 : 0); }
};

std::string to_own(const DebertaSettings& settings);
/// Inverse of to_own, of spec.own.
DebertaSettings settings_of(const ModelSpec& spec);

/// The token that [MASK] is taken for: that of all published vocabularies, 128000, or the last
/// token.
std::int64_t mask_token(const ModelSpec& spec);

/// The models of Hugging Face's hub, by their names there.
std::vector<ModelSpec> presets();

/// Hugging Face's config.json, defaults for absent keys, dropout as in the file; name, family and
/// task are left to the caller. `pointer` stands in front of the place of each problem; nothing if
/// there was one. A key that no such model has is a warning.
std::optional<ModelSpec> read(const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// DebertaV2ForMaskedLM or DebertaV2ForSequenceClassification, as the task says. Tensor 0 is the
/// word embedding. The table of relative positions is the encoder's: its module is never called.
ModelParameters parameters(const ModelSpec& spec);

/// bert::training_flops(), and per token and layer 6 h w for each kind of position scores, w the
/// rows of the table of relative positions. Their projections are not counted: they are made once
/// per micro-batch, whatever its size.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::deberta
