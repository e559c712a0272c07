#include "mpi/signals.hpp"

#include <csignal>

#include <gtest/gtest.h>

namespace dstune {
namespace {

TEST(Signals, WorkerIgnoresUserSignalAndRankZeroRemembersIt) {
  ignore_stop_signals();
  raise(SIGUSR1);
  const bool requested_on_worker = stop_requested();

  watch_stop_signals();
  const bool requested_before = stop_requested();
  raise(SIGUSR1);

  EXPECT_FALSE(requested_on_worker);
  EXPECT_FALSE(requested_before);
  EXPECT_TRUE(stop_requested());
}

}  // namespace
}  // namespace dstune
