// Stage 3: what is known of shards that lie on a drive without reading them.
#pragma once

#include <cstddef>

namespace dstune {

class ShardsOnDrive {
 public:
  ShardsOnDrive() = default;
  ShardsOnDrive(const ShardsOnDrive&) = delete;
  ShardsOnDrive& operator=(const ShardsOnDrive&) = delete;
  virtual ~ShardsOnDrive() = default;

  /// Whether the shard lies there, and is neither in a buffer nor on its way to one.
  virtual bool is_away(std::size_t tensor) const = 0;
  virtual std::size_t free_buffers() const = 0;
};

}  // namespace dstune
