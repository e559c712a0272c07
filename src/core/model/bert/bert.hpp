// BERT, RoBERTa and DistilBERT as data: what their config.json may say, their tensors and modules,
// their FLOPs. They are those of transformers 5.23.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::bert {

/// The three compute alike. RoBERTa counts positions from behind the padding token, DistilBERT has
/// no token types and drops nothing out after attention; names and heads differ.
enum class Variant { bert, roberta, distilbert };

/// The settings of config.json beside the members of ModelSpec; ModelSpec::own is made of it.
struct Settings {
  std::string activation = "gelu";          ///< hidden_act
  std::int64_t type_vocab_size = 0;         ///< 0: no token types
  std::optional<std::int64_t> pad_token{};  ///< pad_token_id
  std::int64_t num_labels = 2;              ///< of sequence classification
};

std::string to_own(const Settings& settings);
/// Inverse of to_own, of spec.own.
Settings settings_of(const ModelSpec& spec);

/// @throws std::invalid_argument  if spec.family is none of them
Variant kin_of(const ModelSpec& spec);

/// Rows of the position table before the one of the first position.
std::int64_t first_position(const ModelSpec& spec);

/// The token that [MASK] is taken for, which config.json does not say: bert-base-uncased's 103,
/// RoBERTa's last.
std::int64_t mask_token(const ModelSpec& spec);

/// The models of Hugging Face's hub, by their names there.
std::vector<ModelSpec> presets(Variant kin);

/// Hugging Face's config.json, defaults for absent keys, dropout as in the file; name, family and
/// task are left to the caller. `pointer` stands in front of the place of each problem; nothing if
/// there was one. A key that no such model has is a warning.
std::optional<ModelSpec> read(Variant kin, const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings);

/// BertForMaskedLM, BertForSequenceClassification, ...: the task says which. Tensor 0 is the word
/// embedding, which the decoder of masked tokens shares; that decoder's bias belongs to the module
/// around it too, but for DistilBERT.
ModelParameters parameters(const ModelSpec& spec);

/// These are parameters() for one kin each.
ModelParameters bert_parameters(const ModelSpec& spec);
ModelParameters roberta_parameters(const ModelSpec& spec);
ModelParameters distilbert_parameters(const ModelSpec& spec);

/// tokens * (6 P_mm + 12 L h s), P_mm the weights of the layers' and the head's products; those of
/// a classifier count once per sequence.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune::bert
