// What all parts of a model's forward share while they compute one micro-batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/random_bits.hpp"
#include "core/train/model.hpp"
#include "core/train/tape/product_workspaces.hpp"

namespace dstune {

/// A micro-batch, where its sequences lie, and the device that computes it; M = rows().
struct BatchContext : MicroBatch {
  BatchContext(const MicroBatch& batch, Device& on)
      : MicroBatch(batch),
        device(&on),
        workspaces(std::make_unique<ProductWorkspaces>(on, batch.workspace)) {}

  std::vector<TokenSpan> sequences = {};  ///< RowLengths::sequences
  bool is_packed = false;
  Device* device;
  std::unique_ptr<ProductWorkspaces> workspaces;
  std::uint64_t seed = 0;  ///< the micro-step's, from which adapters draw what they drop out

  void take(const RowLengths& lengths) {
    size = lengths.rows;
    sequence_length = lengths.length;
    sequences = lengths.sequences;
    is_packed = lengths.is_packed;
  }
  bool is_padded() const { return !sequences.empty() && !is_packed; }
  /// The places behind the sequences of padded rows.
  std::vector<TokenSpan> padding() const;

  std::int64_t rows() const { return size * sequence_length; }

  /// Memory for a parameter's gradient of `numel` elements.
  Buffer gradient(std::int64_t numel) const {
    return make_buffer(*device, MemoryCategory::gradients, numel, dtype);
  }
};

inline std::vector<TokenSpan> BatchContext::padding() const {
  std::vector<TokenSpan> padding;
  for (const TokenSpan& sequence : sequences) {
    const std::int64_t left = sequence_length - sequence.length;
    if (left > 0) padding.push_back({sequence.begin + sequence.length, left});
  }
  return padding;
}

/// An independent seed for each place that draws random numbers, such as a dropout.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t place = 0) {
  return random_bits(seed, place + 1);
}

}  // namespace dstune
