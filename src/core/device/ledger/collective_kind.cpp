#include "core/device/ledger/collective_kind.hpp"

namespace dstune {

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, kCollectiveKinds> kNames = {
      "all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
  return kNames[static_cast<std::size_t>(kind)];
}

double wire_bytes(CollectiveKind kind, Bytes bytes, int group_size) {
  if (group_size <= 1) return 0;
  const double share = static_cast<double>(group_size - 1) / group_size;
  const auto full = static_cast<double>(bytes);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share * full;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return share * full;
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
      return full;
  }
  return 0;
}

}  // namespace dstune
