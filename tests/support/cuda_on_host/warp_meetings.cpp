#include "tests/support/cuda_on_host/warp_meetings.hpp"

#include <bit>

namespace cuda_on_host {

Meeting& WarpMeetings::arrive(std::uint32_t mask, unsigned lane, std::uint64_t value) {
  Meeting* meeting = nullptr;
  for (std::uint64_t used = used_; used != 0 && meeting == nullptr; used &= used - 1) {
    Meeting& candidate = meetings_[static_cast<unsigned>(std::countr_zero(used))];
    if (!candidate.complete && candidate.mask == mask) meeting = &candidate;
  }
  if (meeting == nullptr) {
    const auto index = static_cast<unsigned>(std::countr_one(used_));
    used_ |= std::uint64_t{1} << index;
    meeting = &meetings_[index];
    meeting->mask = mask;
    meeting->arrived = 0;
    meeting->complete = false;
  }
  meeting->arrived |= 1U << lane;
  meeting->values[lane] = value;
  return *meeting;
}

bool WarpMeetings::completes(Meeting& meeting) const {
  if (meeting.arrived != (meeting.mask & live_)) return false;
  meeting.complete = true;
  meeting.readers = meeting.arrived;
  return true;
}

void WarpMeetings::leave(Meeting& meeting, unsigned lane) {
  meeting.readers &= ~(1U << lane);
  if (meeting.readers == 0)
    used_ &= ~(std::uint64_t{1} << static_cast<unsigned>(&meeting - meetings_.data()));
}

std::uint32_t WarpMeetings::lane_ended(unsigned lane) {
  live_ &= ~(1U << lane);
  std::uint32_t freed = 0;
  for (std::uint64_t used = used_; used != 0; used &= used - 1) {
    Meeting& meeting = meetings_[static_cast<unsigned>(std::countr_zero(used))];
    if (!meeting.complete && completes(meeting)) freed |= meeting.arrived;
  }
  return freed;
}

}  // namespace cuda_on_host
