// Disentangled attention (He et al. 2020): scores of contents with contents, of contents with
// relative positions, and of relative positions with contents. There is no fused kernel for it: it
// is eager whatever is asked for.
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
  /// @param table  must outlive this object; nullptr without relative positions
  /// @param index  the layer's
  /// @param name   the module's
  DisentangledAttention(const ModelSpec& spec, const DebertaSettings& settings,
                        const ModelNames& names, const RelativeTable* table, std::size_t index,
                        const std::string& name);

  /// The module's forward.
  /// @param x          (M, h)
  /// @param table      the result of RelativeTable::for_encoder(), (w, h); empty without relative
  /// positions
  /// @param distances  the result of RelativeTable::distances(); empty without relative positions
  /// @param seed       the micro-step's seed
  /// @returns (M, h)
  Value operator()(Tape& on, const Value& x, const Value& table, const Value& distances,
                   std::uint64_t seed) const;

 private:
  /// One of the two sums with relative positions: c2p or p2c.
  struct Side {
    nn::Linear projection;  ///< projects the table
    std::int64_t sign;      ///< of a distance (query minus key) in the index of its row
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
