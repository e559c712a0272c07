// The meetings of a warp's lanes: each shuffle or vote is one.
#pragma once

#include <array>
#include <cstdint>

namespace cuda_on_host {

inline constexpr unsigned kLanes = 32;

/// One meeting: lanes of one mask that bring a value each.
struct Meeting {
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  std::uint32_t readers = 0;  ///< who has not left, once it is complete
  bool complete = false;
  std::array<std::uint64_t, kLanes> values{};
};

/// A warp's meetings. A lane is in one at a time, so there are never more than lanes, and one more
/// while the readers of the last are leaving.
class WarpMeetings {
 public:
  void start(std::uint32_t live) {
    live_ = live;
    used_ = 0;
  }

  /// The meeting of `mask` that still gathers, or a new one, with this lane's value.
  Meeting& arrive(std::uint32_t mask, unsigned lane, std::uint64_t value);

  /// Whether all live lanes of its mask came; then it is complete.
  bool completes(Meeting& meeting) const;

  void leave(Meeting& meeting, unsigned lane);

  /// A lane ended. The lanes of the meetings that waited for it alone.
  std::uint32_t lane_ended(unsigned lane);

 private:
  static constexpr unsigned kMeetings = 2 * kLanes;

  std::uint32_t live_ = 0;
  std::uint64_t used_ = 0;
  std::array<Meeting, kMeetings> meetings_;
};

}  // namespace cuda_on_host
