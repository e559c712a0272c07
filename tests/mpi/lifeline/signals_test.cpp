#include "mpi/lifeline/signals.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/files/exit_code.hpp"
#include "core/base/files/file.hpp"

namespace dstune::signals_test {
namespace {

TEST(Signals, AreNoneOfTheWorkersBusiness) {
  ignore_stop_signals();
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) raise(signal);

  EXPECT_FALSE(stop_requested());
}

class StopSignal : public testing::TestWithParam<int> {};

// Each in a process of its own: a request to stop is never taken back.
TEST_P(StopSignal, IsRememberedByRankZero) {
  const auto ask = [] {
    watch_stop_signals();
    raise(SIGCONT);
    if (stop_requested()) _exit(1);
    raise(GetParam());
    _exit(stop_requested() ? 0 : 2);
  };

  EXPECT_EXIT(ask(), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(All, StopSignal,
                         testing::Values(SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP));

class Crash : public testing::TestWithParam<bool> {
 protected:
  std::string path_ = testing::TempDir() + "dstune-crash-" + std::to_string(getpid());
  void TearDown() override { std::remove(path_.c_str()); }

  void crash() const {
    setenv(kExitCodeFileVariable, path_.c_str(), 1);
    use_exit_code_file();
    signal(SIGABRT, SIG_DFL);
    watch_crashes(7, GetParam());
    std::abort();
  }
};

TEST_P(Crash, LeavesItsExitCodeAndEndsAsItWasTold) {
  if (GetParam()) {
    EXPECT_EXIT(crash(), testing::ExitedWithCode(0), "rank 0 crashed .SIGABRT");
  } else {
    EXPECT_EXIT(crash(), testing::KilledBySignal(SIGABRT), "rank 0 crashed .SIGABRT");
  }

  EXPECT_EQ(read_text_file(path_), "7\n");
}

INSTANTIATE_TEST_SUITE_P(QuietlyOrNot, Crash, testing::Bool());

}  // namespace
}  // namespace dstune::signals_test
