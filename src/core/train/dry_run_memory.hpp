// What the dry runs of one search have in common, so that it is found once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/operations/attention.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

/// Remembers the parameters of the last model, and what a device said of its scratch. Threads may
/// share it.
class DryRunMemory {
 public:
  std::shared_ptr<const ModelParameters> parameters_of(const ModelSpec& spec);

  /// Device::attention_workspace(), whose answer does not depend on the shape's seed. A GPU makes a
  /// plan for each thread that asks it, so that each shape is asked for once.
  /// @param ask  asks the device, which is always the same one
  std::int64_t attention_workspace(const AttentionShape& shape,
                                   const std::function<std::int64_t()>& ask);

 private:
  std::mutex mutex_;
  LastModel model_;
  std::vector<std::pair<AttentionShape, std::int64_t>> workspaces_;
};

}  // namespace dstune
