// Which of a rank's limits has no room for what it needs: that of its device, or one beside it.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/memory/host_memory.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// What a limit is on, in the order of messages.
enum class Store { device, host, pinned, drive };

constexpr std::size_t kStores = 4;

/// The stores that are too small, each at number_of() it.
using Stores = std::bitset<kStores>;

constexpr std::size_t number_of(Store store) { return static_cast<std::size_t>(store); }

std::string_view name_of(Store store);         ///< "device", "host", "pinned", "drive"
std::string_view description_of(Store store);  ///< "the host's memory", "pinned memory"

/// A store beside the device's that is too small for a rank.
struct HostShortage {
  Store store = Store::host;
  Bytes need = 0;
  Bytes limit = 0;

  bool operator==(const HostShortage&) const = default;
};

/// Every store that has no room for `peak`, in the order of Store.
std::vector<HostShortage> host_shortages(const PeakHostMemory& peak, const RunSettings& settings);

/// The store whose limit an experiment has met.
Store store_of(const OutOfMemory& fault, const RunSettings& settings);

/// The message of a run or a plan in which nothing fits, with advice.
/// @param full  the stores that were too small; none: it is the device's memory
std::string nothing_fits_text(const Stores& full);

}  // namespace dstune
