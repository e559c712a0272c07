// DeBERTa's table of relative positions, which the encoder makes ready for all its layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::deberta {

/// rel_embeddings.weight (w, h), which the encoder reads itself, and norms where the config says
/// so. Without a norm this class makes a copy where PyTorch uses the parameter.
class RelativeTable {
 public:
  RelativeTable(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
                const std::string& encoder);

  /// b(i - j) of FillDistances, int64 (sequence, sequence)
  Value distances(Tape& on) const;
  /// The table for all layers; called at the start of the encoder's forward.
  Value for_encoder(Tape& on) const;
  /// The table where one layer reads it.
  /// @param table  the result of for_encoder()
  Value for_layer(Tape& on, const Value& table) const;

 private:
  struct Norm {
    std::size_t module, weight, bias;
    double epsilon;
  };

  bool is_leaf_of_layers(const Tape& on) const;
  Value leaf(Tape& on, const Value& table) const;
  Value normed(Tape& on, const Value& input) const;
  Matrix matrix(const Tensor& tensor) const { return as_matrix(tensor, rows_, columns_); }

  std::int64_t buckets_, most_distance_;
  std::size_t weight_;  // tensor
  std::int64_t rows_, columns_;
  std::optional<Norm> norm_;
};

}  // namespace dstune::deberta
