#include "mpi/lifeline/checks.hpp"

#include <array>
#include <csignal>
#include <optional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dstune::checks_test {
namespace {

Departure first_answer(const Check& check) {
  for (;;) {
    if (const auto departure = check()) return *departure;
  }
}

/// A child that waits for its end.
pid_t start_child() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  return child;
}

TEST(Checks, SeeThatAProcessVanished) {
  const pid_t child = start_child();
  const Check check = process_gone(child, "rank 0", 3);
  const bool before = check().has_value();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  const auto after = check();

  EXPECT_FALSE(before);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->reason, "rank 0 is gone");
  EXPECT_EQ(after->exit_code, 3);
}

TEST(Checks, DeadlineNamesThePhaseAndTheLimit) {
  const auto departure = first_answer(deadline("MPI_Init", 0.004, "look at the hosts", 1));

  EXPECT_EQ(departure.reason, "MPI_Init was not over after 0 s; look at the hosts");
}

TEST(Checks, LauncherThatDiedIsNoticed) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    if (fork() != 0) pause();  // killed when its child has made the check
    const Check check = launcher_gone(5);
    const bool early = check().has_value();
    kill(getppid(), SIGKILL);
    const auto code = static_cast<char>(early ? 0 : first_answer(check).exit_code);
    _exit(write(pipe_ends[1], &code, 1) == 1 ? 0 : 1);
  }
  waitpid(launcher, nullptr, 0);
  char code = 0;
  EXPECT_EQ(read(pipe_ends[0], &code, 1), 1);

  EXPECT_EQ(code, 5);
}

}  // namespace
}  // namespace dstune::checks_test
