// How a pass is divided: among threads, and in time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/host/passes.hpp"
#include "kernels/host/threads.hpp"

namespace dstune::host {

/// Memory traffic between two ticks: about a millisecond of one thread's.
constexpr std::int64_t kTickBytes = std::int64_t{8} << 20U;

/// work(begin, end) over [0, count) on all threads, each in chunks, with the options' ticks.
/// @param traffic  bytes that are read and written for an element
template <class Work>
void for_chunks(Threads& threads, const PassOptions& options, std::int64_t count,
                std::int64_t traffic, Work work) {
  const std::int64_t chunk = kTickBytes / traffic / Threads::kPiece * Threads::kPiece;
  threads.for_ranges(
      count,
      [&](std::int64_t begin, std::int64_t end) {
        const bool is_on_caller = begin == 0;
        for (; begin < end; begin += chunk) {
          if (is_on_caller && options.tick) options.tick();
          work(begin, std::min(begin + chunk, end));
        }
      },
      options.tick);
}

}  // namespace dstune::host
