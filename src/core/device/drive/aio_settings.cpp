#include "core/device/drive/aio_settings.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace dstune {

json::object to_json(const AioSettings& settings) {
  return {{"block_size", settings.block_size},
          {"queue_depth", settings.queue_depth},
          {"intra_op_parallelism", settings.intra_op_parallelism},
          {"single_submit", settings.single_submit},
          {"overlap_events", settings.overlap_events}};
}

AioSettings as_operation_sees(AioSettings settings, Bytes operation) {
  const auto threads = static_cast<Bytes>(settings.intra_op_parallelism);
  const Bytes part = (operation + threads - 1) / threads;
  const Bytes requests = (part + settings.block_size - 1) / settings.block_size;
  if (requests > static_cast<Bytes>(settings.queue_depth)) return settings;
  settings.queue_depth = std::max(1, static_cast<int>(requests));
  settings.overlap_events = true;
  return settings;
}

}  // namespace dstune
