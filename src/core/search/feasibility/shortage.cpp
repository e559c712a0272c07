#include "core/search/feasibility/shortage.hpp"

#include <array>

#include "core/base/text.hpp"

namespace dstune {
namespace {

struct StoreRow {
  std::string_view name;
  std::string_view description;
  std::string_view limit;  ///< what raises it
};

constexpr std::array<StoreRow, kStores> kRows = {{
    {"device", "the device's memory", "memory_limit"},
    {"host", "the host's memory", "dstune.host_memory_limit"},
    {"pinned", "pinned memory", "dstune.pinned_limit, ulimit -l"},
    {"drive", "the drive", "dstune.drive_limit"},
}};

const StoreRow& row_of(Store store) { return kRows[number_of(store)]; }

}  // namespace

std::string_view name_of(Store store) { return row_of(store).name; }

std::string_view description_of(Store store) { return row_of(store).description; }

std::vector<HostShortage> host_shortages(const PeakHostMemory& peak, const RunSettings& settings) {
  const HostLimits limits = settings.host_limits();
  std::vector<HostShortage> found;
  for (const HostShortage& each : {HostShortage{Store::host, peak.held, limits.held},
                                   HostShortage{Store::pinned, peak.pinned, limits.pinned},
                                   HostShortage{Store::drive, peak.drive, limits.drive}}) {
    if (each.need > each.limit) found.push_back(each);
  }
  return found;
}

Store store_of(const OutOfMemory& fault, const RunSettings& settings) {
  if (fault.tier == Tier::device) return Store::device;
  if (fault.tier == Tier::nvme) return Store::drive;
  if (fault.tier == Tier::pageable) return Store::host;
  // Both limits bound what is pinned, so that the one that was met tells them apart. What the
  // system refuses to pin or to lock, it would have given as other memory.
  const bool is_users = settings.pinned_limit > 0 && fault.limit == settings.pinned_limit;
  return is_users || !fault.refusal.empty() ? Store::pinned : Store::host;
}

std::string nothing_fits_text(const Stores& full) {
  const std::string advice = "use more ranks or a smaller model";
  if (full.none() || full == Stores().set(number_of(Store::device))) {
    return concat("no experiment fits in memory; raise memory_limit, ", advice);
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kStores; ++i) {
    if (!full[i]) continue;
    parts.push_back(concat(kRows[i].description, " is too small (", kRows[i].limit, ")"));
  }
  return concat("no experiment fits: ", join(parts, ", "), "; raise ",
                parts.size() == 1 ? "that limit, " : "these limits, ", advice);
}

}  // namespace dstune
