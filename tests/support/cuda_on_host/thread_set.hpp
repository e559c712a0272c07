// A set of a block's threads.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace cuda_on_host {

inline constexpr unsigned kMaxThreads = 1024;

class ThreadSet {
 public:
  void insert(unsigned thread) { words_[thread / 64] |= bit(thread); }
  void erase(unsigned thread) { words_[thread / 64] &= ~bit(thread); }
  void clear() { words_ = {}; }

  /// The lanes of a warp.
  void insert_lanes(unsigned warp, std::uint32_t lanes) {
    words_[warp / 2] |= static_cast<std::uint64_t>(lanes) << (warp % 2 * 32);
  }

  void insert_all(const ThreadSet& others) {
    for (unsigned word = 0; word < kWords; ++word) words_[word] |= others.words_[word];
  }

  /// Removes the first thread at or after `start`, in a circle; kMaxThreads if the set is empty.
  unsigned take_from(unsigned start) {
    unsigned word = start / 64 % kWords;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (start % 64));
    for (unsigned step = 0; step <= kWords; ++step) {
      if (bits != 0) {
        const unsigned thread = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        erase(thread);
        return thread;
      }
      word = (word + 1) % kWords;
      bits = words_[word];
    }
    return kMaxThreads;
  }

  /// Removes the first thread at or before `start`, in a circle; kMaxThreads if the set is empty.
  unsigned take_before(unsigned start) {
    unsigned word = start / 64 % kWords;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} >> (63 - start % 64));
    for (unsigned step = 0; step <= kWords; ++step) {
      if (bits != 0) {
        const unsigned thread = word * 64 + 63 - static_cast<unsigned>(std::countl_zero(bits));
        erase(thread);
        return thread;
      }
      word = (word + kWords - 1) % kWords;
      bits = words_[word];
    }
    return kMaxThreads;
  }

 private:
  static constexpr unsigned kWords = kMaxThreads / 64;
  static std::uint64_t bit(unsigned thread) { return std::uint64_t{1} << (thread % 64); }

  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace cuda_on_host
