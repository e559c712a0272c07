#include "kernels/host/threads.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::host::threads_test {

namespace {

struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::thread::id thread;
};

/// Those that `threads` divides `count` elements into, in their order.
std::vector<Range> ranges_of(Threads& threads, std::int64_t count) {
  std::mutex mutex;
  std::vector<Range> ranges;
  threads.for_ranges(count, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.push_back({begin, end, std::this_thread::get_id()});
  });
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

TEST(ThreadsTest, FewerOfATeamWorkWhereThatIsTheLimit) {
  Threads threads(3);

  threads.limit(2);
  EXPECT_EQ(ranges_of(threads, 1000).size(), 2U);
  threads.limit(0);
  EXPECT_EQ(ranges_of(threads, 1000).size(), 1U);
  threads.limit(7);
  EXPECT_EQ(ranges_of(threads, 1000).size(), 3U);
}

TEST(ThreadsTest, RangesAreEqualButForAPieceAndHoldEveryElementOnce) {
  for (const int team : {1, 2, 3, 5}) {
    Threads threads(team);
    for (const std::int64_t count : {1, 15, 16, 17, 48, 1000, 1000003}) {
      SCOPED_TRACE(testing::Message() << team << " threads, " << count << " elements");
      const std::int64_t pieces = (count + 15) / 16;

      const std::vector<Range> ranges = ranges_of(threads, count);

      ASSERT_EQ(static_cast<std::int64_t>(ranges.size()), std::min<std::int64_t>(team, pieces));
      std::int64_t next = 0;
      for (const Range& range : ranges) {
        EXPECT_EQ(range.begin, next);
        EXPECT_EQ(range.begin % 16, 0);
        const std::int64_t its_pieces = (range.end - range.begin + 15) / 16;
        EXPECT_GE(its_pieces, pieces / team);
        EXPECT_LE(its_pieces, pieces / team + 1);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(ThreadsTest, TheCallerHasTheFirstRangeAndEachOtherThreadOneOfTheOthers) {
  Threads threads(3);

  std::vector<Range> ranges = ranges_of(threads, 1000);

  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].thread, std::this_thread::get_id());
  EXPECT_NE(ranges[1].thread, ranges[0].thread);
  EXPECT_NE(ranges[2].thread, ranges[0].thread);
  EXPECT_NE(ranges[1].thread, ranges[2].thread);
}

TEST(ThreadsTest, NoElementsAreNoWork) {
  Threads threads(2);

  threads.for_ranges(0, [](std::int64_t, std::int64_t) { throw std::logic_error("called"); });
}

TEST(ThreadsTest, ThreadsAreMadeOnce) {
  for (const int team : {1, 3}) {
    Threads threads(team);
    std::set<std::thread::id> seen;
    for (int turn = 0; turn < 10; ++turn) {
      for (const Range& range : ranges_of(threads, 1000)) seen.insert(range.thread);
    }

    EXPECT_EQ(threads.count(), team);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(team));
    EXPECT_EQ(seen.count(std::this_thread::get_id()), 1U);
  }
}

TEST(ThreadsTest, ATeamHasAtLeastOneThread) {
  EXPECT_THROW(Threads(0), std::invalid_argument);
  EXPECT_THROW(Threads(-1), std::invalid_argument);
}

TEST(ThreadsTest, SignalsAreForTheThreadThatWasThereBefore) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Threads threads(2);
  std::atomic<bool> other_blocks{false};

  threads.for_ranges(32, [&](std::int64_t begin, std::int64_t) {
    if (begin == 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    other_blocks = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
  });

  EXPECT_TRUE(other_blocks);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

// What a thread wrote, the caller and every thread of the next turn see without further ado, which
// the thread sanitizer checks.
TEST(ThreadsTest, TurnsFollowOneAnotherAtOnceOrAfterARest) {
  constexpr int kTurns = 2000;
  Threads threads(5);
  std::vector<int> counters(200);
  const auto backwards = [&](std::int64_t i) {
    return counters.size() - 1 - static_cast<std::size_t>(i);
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool is_backward = turn % 2 == 1;  // elements change their threads
    const auto count = turn % 7 == 0 ? 10 : static_cast<std::int64_t>(counters.size());

    threads.for_ranges(count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        ++counters[is_backward ? backwards(i) : static_cast<std::size_t>(i)];
      }
    });
    if (turn % 500 == 0) {  // for longer than they look before they sleep
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    }
  }

  int sum = 0;
  for (const int counter : counters) sum += counter;
  constexpr int kShort = (kTurns + 6) / 7;
  EXPECT_EQ(sum, kShort * 10 + (kTurns - kShort) * 200);
}

/// What `threads` throws if the ranges that begin at `faulty` throw it as a text.
std::string fault_of(Threads& threads, const std::vector<std::int64_t>& faulty) {
  try {
    threads.for_ranges(64, [&](std::int64_t begin, std::int64_t) {
      if (std::count(faulty.begin(), faulty.end(), begin) > 0) {
        throw std::runtime_error(std::to_string(begin));
      }
    });
  } catch (const std::runtime_error& fault) {
    return fault.what();
  }
  return "none";
}

TEST(ThreadsTest, TheExceptionOfTheFirstRangeThatThrewIsThrownOn) {
  Threads threads(4);

  EXPECT_EQ(fault_of(threads, {0}), "0");
  EXPECT_EQ(fault_of(threads, {48}), "48");
  EXPECT_EQ(fault_of(threads, {48, 16}), "16");
  EXPECT_EQ(fault_of(threads, {}), "none");
  EXPECT_EQ(ranges_of(threads, 1000).size(), 4U);
}

TEST(ThreadsTest, AnExceptionWaitsForTheRangesOfOthers) {
  Threads threads(2);
  std::atomic<bool> has_thrown{false};
  bool other_is_through = false;

  EXPECT_THROW(threads.for_ranges(32,
                                  [&](std::int64_t begin, std::int64_t) {
                                    if (begin == 0) {
                                      has_thrown = true;
                                      throw std::runtime_error("aborted");
                                    }
                                    while (!has_thrown) std::this_thread::yield();
                                    other_is_through = true;
                                  }),
               std::runtime_error);

  EXPECT_TRUE(other_is_through);
}

TEST(ThreadsTest, TheCallerTicksWhileItWaitsForOthers) {
  Threads threads(2);
  std::atomic<int> ticks{0};
  std::thread::id ticker;

  threads.for_ranges(
      32,
      [&](std::int64_t begin, std::int64_t) {
        while (begin > 0 && ticks < 3) std::this_thread::yield();
      },
      [&] {
        ticker = std::this_thread::get_id();
        ++ticks;
      });

  EXPECT_GE(ticks, 3);
  EXPECT_EQ(ticker, std::this_thread::get_id());
}

TEST(ThreadsTest, WhatATickThrowsIsThrownOnWhenOthersAreThrough) {
  Threads threads(2);
  std::atomic<bool> has_ticked{false};
  bool other_is_through = false;

  EXPECT_THROW(threads.for_ranges(
                   32,
                   [&](std::int64_t begin, std::int64_t) {
                     if (begin == 0) return;
                     while (!has_ticked) std::this_thread::yield();
                     other_is_through = true;
                   },
                   [&] {
                     has_ticked = true;
                     throw std::runtime_error("aborted");
                   }),
               std::runtime_error);

  EXPECT_TRUE(other_is_through);
  EXPECT_EQ(ranges_of(threads, 1000).size(), 2U);
}

}  // namespace

}  // namespace dstune::host::threads_test
