// T5Attention, of a sequence to itself or of a target to its source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/nn/attention/biased_attention.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/linear.hpp"

namespace dstune::t5 {

/// The arguments of a call beside x.
struct AttentionInputs {
  Value states;  ///< the encoder's output (rows of keys, h); empty: keys and values are made of x
  Value mask;    ///< the result of nn::attention_mask()
  Value& bias;   ///< one for a whole stack, whose first layer makes it; empty until then
  std::uint64_t seed;  ///< draws what is dropped out
};

class T5Attention {
 public:
  /// @param name    the module's
  /// @param causal  it is a decoder's attention to itself
  T5Attention(const ModelSpec& spec, const ModelNames& names, const std::string& name, bool causal);

  /// @param x  (rows of queries, h)
  /// @returns (rows of queries, h)
  Value operator()(Tape& on, const Value& x, const AttentionInputs& inputs) const;

 private:
  nn::BiasedShape shape(const Tape& on, const Value& q, const Value& k, std::uint64_t seed) const;
  Value make_bias(Tape& on, const nn::BiasedShape& call) const;

  std::int64_t heads_;
  std::int64_t head_size_;
  std::int64_t max_distance_;
  double dropout_;
  bool causal_;
  std::size_t module_;
  nn::Linear q_, k_, v_, o_;
  std::optional<nn::Embedding>
      relative_attention_bias_;  ///< only the first layer of a stack has it
  std::int64_t buckets_;
};

}  // namespace dstune::t5
