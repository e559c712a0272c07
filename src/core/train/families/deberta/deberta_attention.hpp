// Disentangled attention (He et al. 2020): scores of contents, of contents with relative positions,
// and of these with contents. There is no fused kernel of it: it is eager whatever is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/device/operations/attention.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/tape/tape.hpp"

namespace dstune::deberta {

/// DisentangledSelfAttention.
class DisentangledAttention {
 public:
  /// @param table  must outlive it; nullptr without relative positions
  /// @param index  of the layer
  /// @param name   of the module
  DisentangledAttention(const ModelSpec& spec, const DebertaSettings& settings,
                        const ModelNames& names, const RelativeTable* table, std::size_t index,
                        const std::string& name);

  /// The module's forward.
  /// @param x          (M, h)
  /// @param table      RelativeTable's for_encoder() (w, h), and
  /// @param distances  its distances(); both empty without relative positions
  /// @param seed       the micro-step's
  /// @returns (M, h)
  Value operator()(Tape& on, const Value& x, const Value& table, const Value& distances,
                   std::uint64_t seed) const;

 private:
  /// c2p or p2c.
  struct Side {
    nn::Linear projection;  ///< of the table
    std::int64_t sign;      ///< how a distance, query minus key, becomes a row of the table
  };

  AttentionShape shape(const Tape& on) const;
  Value project(Tape& on, const Side& side, const Value& table) const;
  Value gather(Tape& on, const Side& side, const Value& heads, const Value& rows,
               const Value& distances) const;
  Value position_scores(Tape& on, const Value& q, const Value& k, const Value& table,
                        const Value& distances) const;

  const RelativeTable* table_;
  std::size_t index_;
  std::int64_t heads_;
  std::int64_t head_size_;
  double scale_;
  bool shares_;
  nn::Linear query_, key_, value_;
  nn::Dropout dropout_;
  nn::Dropout position_dropout_;
  std::optional<Side> c2p_, p2c_;
};

}  // namespace dstune::deberta
