// What the whole computation of one micro-batch shares.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/random_bits.hpp"
#include "core/train/model.hpp"

namespace dstune {

/// A micro-batch as its sequences lie, and the device that computes it; M = rows().
struct BatchContext : MicroBatch {
  BatchContext(const MicroBatch& batch, Device& on) : MicroBatch(batch), device(&on) {}

  std::vector<TokenSpan> sequences = {};  ///< RowLengths::sequences
  bool is_packed = false;
  Device* device;
  std::uint64_t seed = 0;  ///< of the micro-step: what adapters drop out

  void take(const RowLengths& lengths) {
    size = lengths.rows;
    sequence_length = lengths.length;
    sequences = lengths.sequences;
    is_packed = lengths.is_packed;
  }
  bool is_padded() const { return !sequences.empty() && !is_packed; }
  /// What is behind the sequences of padded rows.
  std::vector<TokenSpan> padding() const;

  std::int64_t rows() const { return size * sequence_length; }

  /// A parameter's gradient.
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

/// An independent seed for each place that draws, such as those that drop out.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t place = 0) {
  return random_bits(seed, place + 1);
}

}  // namespace dstune
