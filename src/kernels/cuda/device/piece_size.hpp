// How much of a GPU the memory may take that buffers lie in.
#pragma once

#include "core/base/units.hpp"

namespace dstune::cuda {

/// Left to what libraries load and take as they go, beside what the probe makes them load: more
/// kernels of cuBLASLt and cuDNN, and their plans. PyTorch 2.1's context with all of its kernels
/// has 0.45 GiB more than with those that are used alone (docs/decisions/gpu-device.md).
constexpr Bytes kLoadedLater = Bytes{512} << 20U;

/// What NCCL has of a GPU, and what its reserve allows it beside that.
struct NcclMemory {
  Bytes taken = 0;
  Bytes to_come = 0;
};

/// A piece for buffers of `limit` bytes: rounding and gaps between buffers need some more.
Bytes with_slack(Bytes limit);
/// The part of `bytes` to keep, so that with_slack() of the rest is not more than `bytes`.
Bytes slack_of(Bytes bytes);

/// The largest piece, or the most of all segments, that leaves NCCL what is still to come, and
/// kLoadedLater less what has been loaded already.
/// @param free      now, without the piece and the segments
/// @param at_start  what was free when nothing was loaded later and NCCL had nothing
Bytes most_for_buffers(Bytes free, Bytes at_start, const NcclMemory& nccl);

}  // namespace dstune::cuda
