// Where the memory of a caching allocator's segments comes from.
#pragma once

#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// A device whose memory lies in the segments of its budget has one; elsewhere segments are an
/// account.
class SegmentSource {
 public:
  SegmentSource() = default;
  virtual ~SegmentSource() = default;
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;

  struct Segment {
    void* data = nullptr;  ///< null: the system has no such memory left
    std::string refusal;   ///< then why, for people
  };

  /// Memory for one segment; it must not wait for the device.
  /// @param size  CachingModel::segment_size() of a request, not 0
  /// @throws what the device does if it is not memory that is missing; then nothing was taken
  virtual Segment make(Bytes size) = 0;
  /// Gives a segment back, which no stream may use any more.
  /// @param data, size  of a segment that make() has given
  virtual void give_back(void* data, Bytes size) noexcept = 0;
};

}  // namespace dstune
