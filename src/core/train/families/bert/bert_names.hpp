// What the modules of BERT and its kin are called, and how they are nested.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/model/bert/bert.hpp"
#include "core/train/layers/scopes.hpp"

namespace dstune::bert {

/// Steps of a block's forward.
inline constexpr int kProject = 0;
inline constexpr int kOut = 1;
inline constexpr int kNorm = 2;
inline constexpr int kInner = 3;
inline constexpr int kOuter = 4;
inline constexpr int kLastNorm = 5;
/// Steps of a model's forward.
inline constexpr int kEmbed = 0;
inline constexpr int kEncode = 1;
inline constexpr int kHead = 2;
inline constexpr int kInsideHead = 3;
/// Steps of the head of masked tokens.
inline constexpr int kTransform = 0;
inline constexpr int kTransformNorm = 1;
inline constexpr int kDecode = 2;
/// Steps of a classifier.
inline constexpr int kPool = 0;
inline constexpr int kActivate = 1;
inline constexpr int kClassify = 2;

/// Behind a block's name.
struct BlockNames {
  std::string_view stem;  ///< of the blocks' names: stem + index
  std::array<std::string_view, 3> query_key_value;
  std::string_view out;
  std::string_view out_dropout;  ///< "": nothing drops out there
  std::string_view norm;
  std::string_view inner;
  std::string_view activation;
  std::string_view outer;
  std::string_view dropout;
  std::string_view last_norm;
  std::span<const layers::Scope> scopes;
};

struct MaskedHeadNames {
  std::string_view dense;
  std::string_view activation;  ///< its module; "": a function
  std::string_view norm;
  std::string_view decoder;
  std::string_view bias;  ///< the decoder's, as a tensor
  std::string_view loss;  ///< its module; "": none
  std::span<const layers::Scope> scopes;
};

struct ClassifierNames {
  std::string_view input_dropout;  ///< of the first token's state; "": none
  std::string_view dense;
  std::string_view activation;  ///< its module; "": a function
  std::string_view dropout;
  std::string_view out;
  std::span<const layers::Scope> scopes;
};

struct Names {
  std::string_view embeddings;
  BlockNames block;
  MaskedHeadNames masked;
  ClassifierNames classifier;
  std::span<const layers::Scope> of_masked_lm;  ///< around ModelSteps
  std::span<const layers::Scope> of_classification;
};

const Names& names_of(Variant kin);

}  // namespace dstune::bert
