// torch.nn.Embedding, and the numbers of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// The module `name` with its "weight" (rows, h). Its gradient is dense, a tensor of its own.
class Embedding {
 public:
  Embedding(const ModelNames& names, const std::string& name);
  /// An embedding whose table other modules have too.
  Embedding(const ModelNames& names, std::size_t module, std::size_t weight);

  std::size_t weight() const { return weight_; }
  /// @param numbers  int64, any number of them
  /// @returns the rows of these numbers (numbers.numel, h)
  Value operator()(Tape& on, const Value& numbers) const;
  /// The same of a model's input (get_input_embeddings()): the rows need a gradient where
  /// MicroBatch::inputs_need_gradients says so.
  /// @param factor  by which the module multiplies them
  Value of_tokens(Tape& on, const Value& tokens, double factor = 1) const;

 private:
  Value look_up(Tape& on, const Value& numbers) const;

  std::size_t module_;
  std::size_t weight_;  // tensor
  std::int64_t rows_;
  std::int64_t size_;
};

/// The token numbers, which the step owns, as a value.
Value tokens_of(Tensor tokens);
/// The positions `first` + 0, 1, ... of each token of the micro-batch, or of one row; they begin
/// anew in each packed sequence. int64
Value positions(Tape& on, std::int64_t count, std::int64_t first);

}  // namespace dstune::nn
