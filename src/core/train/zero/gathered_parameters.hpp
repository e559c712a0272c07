// Stage 3: the full tensors of the modules that are in use.
#pragma once

#include <cstddef>
#include <vector>

#include "core/train/collectives.hpp"
#include "core/train/device.hpp"
#include "core/train/zero/shard_layout.hpp"

namespace dstune {

/// Gathers per module. One tensor is received where it stays; several come in one call into a
/// rank-major buffer and are unpacked. A tensor stays until everyone who fetched it released it.
class GatheredParameters {
 public:
  GatheredParameters(Device& device, Collectives& collectives, const ShardLayout& layout,
                     const ModelParameters& parameters, DType dtype, Stream stream);

  /// @param shards  this rank's, by `layout`
  void fetch(const std::vector<std::size_t>& tensors, Tensor shards);
  void release(const std::vector<std::size_t>& tensors);
  Tensor full(std::size_t tensor) const;

 private:
  void gather_one(std::size_t tensor, Tensor shards);
  void gather_together(const std::vector<std::size_t>& tensors, Tensor shards);
  void gather(Tensor part, Tensor whole);
  void unpack(std::size_t tensor, Tensor received, std::int64_t offset, std::int64_t stride);

  Device& device_;
  Collectives& collectives_;
  const ShardLayout& layout_;
  const ModelParameters& parameters_;
  DType dtype_;
  Stream stream_;
  std::vector<Buffer> full_;
  std::vector<int> users_;
};

}  // namespace dstune
