#include "mpi/lifeline/sentinel.hpp"

#include <csignal>
#include <future>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace dstune::sentinel_test {
namespace {

constexpr Seconds kOften = 1e-3;

/// The first departure that a sentinel with `check` reports.
Departure departure_of(const Check& check) {
  std::promise<Departure> promise;
  bool told = false;
  Sentinel sentinel(kOften, [&](const Departure& departure) {
    if (!std::exchange(told, true)) promise.set_value(departure);
  });
  const auto watch = sentinel.watch(check);
  return promise.get_future().get();
}

TEST(Sentinel, ReportsWhatACheckSaysFromAThreadThatTakesNoSignals) {
  int looks = 0;
  sigset_t blocked;

  const auto departure = departure_of([&]() -> std::optional<Departure> {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (++looks < 3) return std::nullopt;
    return Departure{"third look", 7};
  });

  EXPECT_EQ(departure.reason, "third look");
  EXPECT_EQ(departure.exit_code, 7);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
}

TEST(Sentinel, ForgetsACheckWithItsWatch) {
  std::promise<void> looked_twice;
  int forgotten = 0;
  int looks = 0;
  {
    Sentinel sentinel(kOften, [](const Departure&) {});
    {
      const auto watch = sentinel.watch([&]() -> std::optional<Departure> {
        ++forgotten;
        return std::nullopt;
      });
    }
    const int before = forgotten;
    const auto watch = sentinel.watch([&]() -> std::optional<Departure> {
      if (++looks == 2) looked_twice.set_value();
      return std::nullopt;
    });
    looked_twice.get_future().wait();

    EXPECT_EQ(forgotten, before);
  }
}

}  // namespace
}  // namespace dstune::sentinel_test
