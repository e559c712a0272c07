// What the modules of DeBERTa are called, and how they are nested.
#pragma once

#include <span>

#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/scopes.hpp"

namespace dstune::deberta {

inline constexpr std::string_view kEmbeddings = "deberta.embeddings";
inline constexpr std::string_view kEncoder = "deberta.encoder";
inline constexpr std::string_view kSelf = ".attention.self";  ///< behind a block's name

/// Of its steps (bert_names.hpp). Where several projections are, query_key_value has the first
/// three.
extern const bert::BlockNames kBlock;
extern const bert::MaskedHeadNames kLegacyHead;
extern const bert::ClassifierNames kClassifier;
/// Around the steps of a model.
std::span<const layers::Scope> model_scopes();

}  // namespace dstune::deberta
