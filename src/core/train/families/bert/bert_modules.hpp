// The modules that BERT, its kin and DeBERTa have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/device/operations/random.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::bert {

/// Where chance has a part in a micro-step, each place with a seed of its own.
enum class Chance : std::uint64_t {
  batch,  ///< masks, or labels
  embedding,
  classifier_input,
  classifier,
  of_layers  ///< from here on three per layer
};
/// What drops out in one layer.
enum class Dropped : std::uint64_t { attention, out, mlp };

inline std::uint64_t seed_at(std::uint64_t seed, Chance place) {
  return seed_of(seed, static_cast<std::uint64_t>(place));
}
inline std::uint64_t seed_at(std::uint64_t seed, std::size_t layer, Dropped place) {
  return seed_of(seed, static_cast<std::uint64_t>(Chance::of_layers) + 3 * layer +
                           static_cast<std::uint64_t>(place));
}

/// BertSelfOutput and BertOutput: norm(dropout(dense(x)) + residual).
class Output {
 public:
  Output(const ModelSpec& spec, const ModelNames& names, const std::string& name);

  Value operator()(Tape& on, const Value& x, const Value& residual, std::uint64_t seed) const;

 private:
  std::size_t module_;
  nn::Linear dense_;
  nn::Dropout dropout_;
  nn::LayerNorm norm_;
};

/// BertLayer, around any self-attention.
class BertLayer {
 public:
  /// @param activation  as in config.json
  BertLayer(const ModelSpec& spec, const ModelNames& names, const std::string& name,
            const std::string& activation);

  std::size_t module() const { return module_; }
  /// @param self  the forward of the module ".attention.self": (M, h) -> (M, h)
  /// @param seed  the micro-step's
  Value operator()(Tape& on, std::size_t layer, const Value& x,
                   const std::function<Value(const Value&)>& self, std::uint64_t seed) const;

 private:
  std::size_t module_;
  std::size_t attention_;
  std::size_t self_;
  Output attention_output_;
  std::size_t intermediate_;
  nn::Linear inner_;
  nn::ActivationFunction activation_;
  Output output_;
};

/// What a model's parts are called; "" where there is no such module.
struct MaskedLmHeadNames {
  std::string_view outer;      ///< around all of it
  std::string_view inner;      ///< likewise, in `outer`
  std::string_view transform;  ///< around what comes before the decoder
  std::string_view dense;
  std::string_view activation;
  std::string_view norm;
  std::string_view decoder;
  std::string_view bias;  ///< the decoder's, as a tensor
};
const MaskedLmHeadNames& masked_head_of(Variant kin);

/// The head of masked tokens: dense, activation, norm, and a decoder that shares the words' table.
class MaskedLmHead {
 public:
  /// @param activation  as in config.json
  /// @param word_table  tensor (V, e)
  MaskedLmHead(const ModelSpec& spec, const ModelNames& names, const MaskedLmHeadNames& called,
               const std::string& activation, std::size_t word_table);

  /// @param states  (M, h)
  /// @returns the logits (M, V)
  Value operator()(Tape& on, const Value& states) const;

 private:
  std::optional<std::size_t> outer_, inner_, transform_;
  nn::Linear dense_;
  nn::ActivationFunction activation_;
  nn::LayerNorm norm_;
  nn::Product decoder_;
};

struct SequenceClassifierNames {
  std::string_view head;           ///< around all of it; "": no module
  std::string_view pooler;         ///< around all before the last dropout; "": no module
  std::string_view input_dropout;  ///< of the first token's state; "": none
  std::string_view dense;
  std::string_view activation;  ///< its module; "": a function
  std::string_view dropout;
  std::string_view out;
};
const SequenceClassifierNames& classifier_of(Variant kin);

/// The classifier of sequences: the first token's state through dense, activation and a last layer.
class SequenceClassifier {
 public:
  /// @param activation     as in config.json files
  /// @param input_dropout  its probability
  SequenceClassifier(const ModelSpec& spec, const ModelNames& names,
                     const SequenceClassifierNames& called, const std::string& activation,
                     double input_dropout);

  /// @param states  (M, h)
  /// @param seed    the micro-step's
  /// @returns (batch, h)
  Value pool(Tape& on, const Value& states, std::uint64_t seed) const;
  /// @returns the logits (batch, labels)
  Value classify(Tape& on, const Value& pooled, std::uint64_t seed) const;
  /// Both, one behind the other.
  Value operator()(Tape& on, const Value& states, std::uint64_t seed) const;

 private:
  std::optional<std::size_t> head_, pooler_;
  nn::Dropout input_dropout_;
  nn::Linear dense_;
  nn::ActivationFunction activation_;
  nn::Dropout dropout_;
  nn::Linear out_;
};

/// What a micro-step asks, drawn by its seed: tokens that are masked, or a class for each sequence.
class Questions {
 public:
  Questions(const ModelSpec& spec, std::int64_t mask_token);

  /// Masks tokens in place. What is behind a sequence is asked for nothing. For a classifier
  /// nothing is masked, but tokens that would be padding are replaced alike.
  /// @returns the labels, int64; below 0: none
  Value labels(Tape& on, const nn::StepInput& input) const;

 private:
  MaskTokens masking_;
  std::int64_t classes_;  // 0: words are asked for
};

}  // namespace dstune::bert
