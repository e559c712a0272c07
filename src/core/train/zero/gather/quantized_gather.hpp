// Stage 3 with zero_quantized_weights (qwZ): shards are gathered as int8.
#pragma once

#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"

namespace dstune {

/// A message that is on its way, or has arrived, and is not dequantised yet: the values and steps
/// of all ranks.
struct QuantizedMessage {
  Buffer values;   ///< int8
  Buffer steps;    ///< fp32
  Event received;  ///< when both have arrived
};

/// The two halves of DeepSpeed's quantised gather (docs/decisions/quantisation.md): the launch, and
/// the dequantisation. Between them only the message is held.
///
/// For a message of n elements per rank in G = weight_groups(n) groups, on N ranks:
///
/// | collective | type | elements X | bytes X |
/// |---|---|---|---|
/// | all_gather | int8 | n N | n N |
/// | all_gather | fp32 | G N | 4 G N |
///
/// Temporaries of the launch, freed when it returns: n e bytes (a copy that joins several shards),
/// 2 n (their cast to fp16, unless they are fp16), and n + 4 G (quantised). dequantized() takes 2 n
/// N bytes (fp16, unless `dtype` is fp16).
class QuantizedGather {
 public:
  QuantizedGather(Device& device, Collectives& collectives, DType dtype)
      : device_(device), collectives_(collectives), dtype_(dtype) {}

  /// @param shards  this rank's, in the order in which every rank gives its own
  /// @throws QuantizationRefused  if their length is not a multiple of 8
  QuantizedMessage launch(const std::vector<Tensor>& shards) const;

  /// The dequantised elements of the shards of all ranks, rank by rank, in the order of launch().
  /// The current stream must have waited for the message.
  /// @param category  of the result
  Buffer dequantized(const QuantizedMessage& message, MemoryCategory category) const;

 private:
  /// The shards as one fp16 tensor; `together` and `half` hold the copies that this needs.
  Tensor joined(const std::vector<Tensor>& shards, Buffer& together, Buffer& half) const;
  /// Memory for what all ranks send, each as much as `own`.
  Buffer all_of(const Buffer& own) const;

  Device& device_;
  Collectives& collectives_;
  DType dtype_;
};

}  // namespace dstune
