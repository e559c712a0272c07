// DeepSpeed's "aio" section: how files are read and written where something is offloaded to NVMe.
#pragma once

#include <string>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// The members are DeepSpeed's keys, with its defaults.
struct AioSettings {
  Bytes block_size = Bytes{1} << 20U;  ///< of a request
  int queue_depth = 8;                 ///< requests of a thread that are under way at once
  int intra_op_parallelism = 1;        ///< threads, each with an equal part of an operation
  bool single_submit = false;          ///< a system call for each request
  bool overlap_events = true;          ///< new requests follow as others end; false: in batches

  bool operator==(const AioSettings&) const = default;
};

/// The section as a DeepSpeed configuration has it, without "use_gds".
json::object to_json(const AioSettings& settings);

/// The settings by which an operation of `operation` bytes is cut into the same requests, which are
/// under way together in the same way: where a thread's part has no more requests than its queue
/// takes, neither a deeper queue nor overlap_events changes anything.
AioSettings as_operation_sees(AioSettings settings, Bytes operation);

}  // namespace dstune
