// What every layer of one micro-batch shares: sizes, dtype, device, and the buffers it may ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/device.hpp"
#include "core/train/layers/model.hpp"
#include "core/train/layers/module_hooks.hpp"

namespace dstune::layers {

/// Sizes of one micro-batch, and its device; M = rows.
struct Workspace {
  Workspace(const MicroBatch& batch, Device& on)
      : micro_batch(batch.size),
        sequence_length(batch.sequence_length),
        dtype(batch.dtype),
        linear(batch.linear),
        attention(batch.attention),
        loss(batch.loss),
        checkpointing(batch.checkpointing),
        checkpoints_synchronize(batch.checkpoints_synchronize),
        device(&on) {}

  std::int64_t micro_batch;
  std::int64_t sequence_length;           ///< tokens of a row
  std::vector<TokenSpan> sequences = {};  ///< RowLengths::sequences
  bool is_packed = false;
  DType dtype;
  LinearLayers linear;
  AttentionKind attention;
  LossSettings loss;
  ActivationCheckpointing checkpointing;
  bool checkpoints_synchronize;
  Device* device;
  std::uint64_t seed = 0;  ///< of the micro-step: what adapters drop out

  void take(const RowLengths& lengths) {
    micro_batch = lengths.rows;
    sequence_length = lengths.length;
    sequences = lengths.sequences;
    is_packed = lengths.is_packed;
  }
  bool is_padded() const { return !sequences.empty() && !is_packed; }

  std::int64_t rows() const { return micro_batch * sequence_length; }

  /// `cols` elements per row in the model dtype.
  Buffer activation(std::int64_t cols) const {
    return make_buffer(*device, MemoryCategory::activations, rows() * cols, dtype);
  }
  /// `cols` fp32 elements per row.
  Buffer activation_fp32(std::int64_t cols) const {
    return make_buffer(*device, MemoryCategory::activations, rows() * cols, DType::fp32);
  }
  /// One byte per element.
  Buffer mask(std::int64_t cols) const {
    return {*device, MemoryCategory::activations, static_cast<Bytes>(rows() * cols)};
  }
  /// A parameter's gradient.
  Buffer gradient(std::int64_t numel) const {
    return make_buffer(*device, MemoryCategory::gradients, numel, dtype);
  }
  /// The buffer made by activation(cols) as (M, cols).
  Matrix matrix(const Buffer& buffer, std::int64_t cols) const {
    return as_matrix(buffer.tensor(dtype), rows(), cols);
  }
  Matrix matrix_fp32(const Buffer& buffer, std::int64_t cols) const {
    return as_matrix(buffer.tensor(DType::fp32), rows(), cols);
  }
};

/// What is behind the sequences of padded rows.
inline std::vector<TokenSpan> padding_of(const Workspace& work) {
  std::vector<TokenSpan> padding;
  for (const TokenSpan& sequence : work.sequences) {
    const std::int64_t left = work.sequence_length - sequence.length;
    if (left > 0) padding.push_back({sequence.begin + sequence.length, left});
  }
  return padding;
}

/// SplitMix64: neighbouring inputs give unrelated outputs.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

/// An independent seed for each place that drops out.
constexpr std::uint64_t seed_of(std::uint64_t micro_step_seed, std::uint64_t place) {
  return mix(micro_step_seed + place * 0x9e3779b97f4a7c15U);
}

}  // namespace dstune::layers
