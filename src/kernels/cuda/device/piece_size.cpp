#include "kernels/cuda/device/piece_size.hpp"

#include <algorithm>
#include <limits>

namespace dstune::cuda {

namespace {

constexpr Bytes kLeastSlack = Bytes{32} << 20U;
constexpr Bytes kSlackShare = 32;

Bytes less(Bytes a, Bytes b) { return a - std::min(a, b); }

}  // namespace

Bytes with_slack(Bytes limit) {
  const Bytes slack = std::max(kLeastSlack, limit / kSlackShare);
  return limit > std::numeric_limits<Bytes>::max() - slack ? limit : limit + slack;
}

Bytes slack_of(Bytes bytes) {
  return std::min(bytes, std::max(kLeastSlack, bytes / (kSlackShare + 1) + 1));
}

Bytes most_for_buffers(Bytes free, Bytes at_start, const NcclMemory& nccl) {
  const Bytes loaded = less(less(at_start, nccl.taken), free);
  return less(less(free, nccl.to_come), less(kLoadedLater, loaded));
}

}  // namespace dstune::cuda
