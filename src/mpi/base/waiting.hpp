// Time and patience: how a rank waits without burning a core that another rank needs.
#pragma once

#include "core/base/units.hpp"

namespace dstune {

/// Seconds of a clock that only goes forward.
Seconds steady_now();

/// Pause between two looks at something that may take seconds: 20 us, growing to 1 ms.
class Backoff {
 public:
  void pause();
  void reset() noexcept { pause_ = kShortest; }

 private:
  static constexpr Seconds kShortest = 20e-6;

  Seconds pause_ = kShortest;
};

/// Pause between two looks at a transfer that is most likely under way: gives the core away at
/// once, and sleeps only after a millisecond (the peer is still computing).
class Yield {
 public:
  void pause();

 private:
  int looks_ = 0;
  Seconds begin_ = 0;
};

/// How long a peer has been silent, counting only time in which we listened: if this rank itself
/// was away for a minute, the peer's messages of that minute are still to be read.
class Silence {
 public:
  void broken() noexcept { length_ = 0; }
  /// To be called at every look, `now` from steady_now().
  void listened(Seconds now);
  Seconds length() const noexcept { return length_; }

 private:
  Seconds length_ = 0;
  Seconds last_look_ = 0;
};

}  // namespace dstune
