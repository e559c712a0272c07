// How a rank waits without using a core that another rank needs.
#pragma once

#include "core/base/units.hpp"

namespace dstune {

/// The time in seconds of a clock that only goes forward.
Seconds steady_now();

/// Pauses between two looks at something that may take seconds: 20 us at first, growing to 1 ms.
class Backoff {
 public:
  void pause();
  void reset() noexcept { pause_ = kShortest; }

 private:
  static constexpr Seconds kShortest = 20e-6;

  Seconds pause_ = kShortest;
};

/// Pauses between two looks at a transfer that is most likely under way. A pause yields the core at
/// once; after a millisecond the peer is probably still computing, and pauses sleep.
class Yield {
 public:
  void pause();

 private:
  int looks_ = 0;
  Seconds begin_ = 0;
};

/// Measures for how long a peer has been silent, and counts only time in which this rank listened:
/// if this rank itself was stopped for a minute, the peer's messages of that minute are still to be
/// read.
class Silence {
 public:
  void broken() noexcept { length_ = 0; }
  /// Call it at every look, with `now` from steady_now().
  void listened(Seconds now);
  Seconds length() const noexcept { return length_; }

 private:
  Seconds length_ = 0;
  Seconds last_look_ = 0;
};

}  // namespace dstune
