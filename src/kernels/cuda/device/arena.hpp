// Places for buffers in one piece of memory, which streams use again without waiting for the host.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/units.hpp"
#include "core/device/stream.hpp"

namespace dstune::cuda {

/// Whether each stream may still use a place.
using StreamSet = std::array<bool, kStreams>;

/// Knows places only and touches no memory. A place that was given back may be used again by its
/// own stream at once, since that does one thing after another; another stream has to wait for it
/// first.
class Arena {
 public:
  /// Every place is a multiple of it.
  static constexpr Bytes kAlignment = 512;

  explicit Arena(Bytes size);

  struct Place {
    Bytes offset = 0;
    StreamSet wait_for{};  ///< by other streams: what they hold now comes before it may be used
  };

  /// The smallest gap that fits; of these one that `stream` itself or nobody has used, if any.
  /// @returns nothing if there is no gap so large
  std::optional<Place> take(Bytes size, Stream stream);
  /// @param offset  as take() gave it
  /// @param users   streams that may still use it, beside its own: what take() said to wait for,
  ///                where nobody has waited
  void give_back(Bytes offset, const StreamSet& users = {}) noexcept;

  /// All streams are done: what was given back is anybody's.
  void forget_streams() noexcept;

  Bytes size() const noexcept { return size_; }
  Bytes in_use() const noexcept { return in_use_; }

 private:
  struct Gap {
    Bytes size = 0;
    StreamSet users{};
  };
  struct Taken {
    Bytes size = 0;
    Stream stream = Stream::compute;
  };
  using Gaps = std::map<Bytes, Gap>;

  Gaps::iterator best_gap(Bytes size, Stream stream);
  void add_gap(Bytes offset, const Gap& gap);
  void erase_gap(Gaps::iterator gap);

  Bytes size_;
  Bytes in_use_ = 0;
  Gaps gaps_;                                  ///< by offset; no two adjoin
  std::set<std::pair<Bytes, Bytes>> by_size_;  ///< (size, offset) of the gaps
  std::map<Bytes, Taken> taken_;               ///< by offset
};

}  // namespace dstune::cuda
