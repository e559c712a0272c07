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

/// The places of a micro-step that draw random numbers, each with a seed of its own.
enum class Chance : std::uint64_t {
  batch,  ///< the tokens to mask, or the labels
  embedding,
  classifier_input,
  classifier,
  of_layers  ///< from here on each layer has three places
};
/// The places of one layer that drop out.
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
  /// @param activation  its name in config.json
  BertLayer(const ModelSpec& spec, const ModelNames& names, const std::string& name,
            const std::string& activation);

  std::size_t module() const { return module_; }
  /// @param self  the forward of the module ".attention.self": (M, h) -> (M, h)
  /// @param seed  the micro-step's seed
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

/// The names of the parts of a model; "" where there is no such module.
struct MaskedLmHeadNames {
  std::string_view outer;      ///< the module around all of it
  std::string_view inner;      ///< the module around all of it, within `outer`
  std::string_view transform;  ///< the module around what comes before the decoder
  std::string_view dense;
  std::string_view activation;
  std::string_view norm;
  std::string_view decoder;
  std::string_view bias;  ///< the decoder's bias, a tensor
};
const MaskedLmHeadNames& masked_head_of(Variant kin);

/// The head of masked tokens: dense, activation, norm, and a decoder that shares the words' table.
class MaskedLmHead {
 public:
  /// @param activation  its name in config.json
  /// @param word_table  the tensor (V, e) of the words' embedding
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
  std::string_view head;    ///< the module around all of it; "": none
  std::string_view pooler;  ///< the module around all that comes before the last dropout; "": none
  std::string_view input_dropout;  ///< the module that drops out the first token's state; "": none
  std::string_view dense;
  std::string_view activation;  ///< the activation's module; "": it is a function
  std::string_view dropout;
  std::string_view out;
};
const SequenceClassifierNames& classifier_of(Variant kin);

/// The classifier of sequences: the first token's state through dense, activation and a last layer.
class SequenceClassifier {
 public:
  /// @param activation     its name in config.json
  /// @param input_dropout  the probability with which the first token's state is dropped out
  SequenceClassifier(const ModelSpec& spec, const ModelNames& names,
                     const SequenceClassifierNames& called, const std::string& activation,
                     double input_dropout);

  /// @param states  (M, h)
  /// @param seed    the micro-step's seed
  /// @returns (batch, h)
  Value pool(Tape& on, const Value& states, std::uint64_t seed) const;
  /// @returns the logits (batch, labels)
  Value classify(Tape& on, const Value& pooled, std::uint64_t seed) const;
  /// pool(), then classify().
  Value operator()(Tape& on, const Value& states, std::uint64_t seed) const;

 private:
  std::optional<std::size_t> head_, pooler_;
  nn::Dropout input_dropout_;
  nn::Linear dense_;
  nn::ActivationFunction activation_;
  nn::Dropout dropout_;
  nn::Linear out_;
};

/// The task of a micro-step, drawn by its seed: tokens that are masked, or a class for each
/// sequence.
class Questions {
 public:
  Questions(const ModelSpec& spec, std::int64_t mask_token);

  /// Masks tokens in place. Padding behind a sequence gets no labels. A classifier's tokens are not
  /// masked, but those that would be padding are replaced in the same way.
  /// @returns the labels, int64; a label below 0 does not count
  Value labels(Tape& on, const nn::StepInput& input) const;

 private:
  MaskTokens masking_;
  std::int64_t classes_;  // 0: the task is to find masked words
};

}  // namespace dstune::bert
