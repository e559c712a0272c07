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
  /// With a table that other modules have too.
  Embedding(const ModelNames& names, std::size_t module, std::size_t weight);

  std::size_t weight() const { return weight_; }
  /// @param numbers  int64, any number of them
  /// @returns their rows (numbers.numel, h)
  Value operator()(Tape& on, const Value& numbers) const;

 private:
  Value look_up(Tape& on, const Value& numbers) const;

  std::size_t module_;
  std::size_t weight_;  // tensor
  std::int64_t rows_;
  std::int64_t size_;
};

/// Token numbers that the step owns.
Value tokens_of(Tensor tokens);
/// `first` + 0, 1, ... for each token of the micro-batch, or of one row; packed sequences begin
/// anew. int64
Value positions(Tape& on, std::int64_t count, std::int64_t first);

}  // namespace dstune::nn
