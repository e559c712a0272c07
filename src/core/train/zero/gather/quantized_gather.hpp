// Stage 3 with zero_quantized_weights (qwZ): shards are gathered as int8.
#pragma once

#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"

namespace dstune {

/// A message that is on its way, or has arrived, and is not dequantised yet: everybody's values and
/// steps.
struct QuantizedMessage {
  Buffer values;   ///< int8
  Buffer steps;    ///< fp32
  Event received;  ///< both
};

/// DeepSpeed's two halves of a quantised gather (docs/decisions/quantisation.md): the launch, and
/// the rest. Between them only the message is held.
///
/// For a message of n elements per rank in G = weight_groups(n) groups, on N ranks:
///
/// | collective | type | elements X | bytes X |
/// |---|---|---|---|
/// | all_gather | int8 | n N | n N |
/// | all_gather | fp32 | G N | 4 G N |
///
/// Temporaries of the launch, freed when it returns: n e (several shards are first copied
/// together), 2 n (their cast to fp16, unless they are), n + 4 G (quantised). The wait has these: 2
/// n N (fp16, unless `dtype` is).
class QuantizedGather {
 public:
  QuantizedGather(Device& device, Collectives& collectives, DType dtype)
      : device_(device), collectives_(collectives), dtype_(dtype) {}

  /// @param shards  this rank's, in the order in which every rank gives its own
  /// @throws QuantizationRefused  if their length is no multiple of 8
  QuantizedMessage launch(const std::vector<Tensor>& shards) const;

  /// Everybody's shards, rank by rank, as launch() was given them; dequantised elements. The
  /// current stream has waited for the message.
  /// @param category  what the result is for
  Buffer dequantized(const QuantizedMessage& message, MemoryCategory category) const;

 private:
  /// The shards as one fp16 tensor; `together` and `half` hold what must be made for that.
  Tensor joined(const std::vector<Tensor>& shards, Buffer& together, Buffer& half) const;
  /// Room for everybody's.
  Buffer all_of(const Buffer& own) const;

  Device& device_;
  Collectives& collectives_;
  DType dtype_;
};

}  // namespace dstune
