#include "core/report/journal/run_process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dstune::run_process_test {
namespace {

TEST(RunProcess, TextFormIsExact) {
  const RunProcess process{"nodeA", 4711, 123456789012, "pid:[4026531836]", "/tmp/ompi.nodeA.0"};

  EXPECT_EQ(run_process_from_json(to_json(process)), process);
}

TEST(LookFor, SeesItself) {
  EXPECT_EQ(look_for(this_process()), Sight::alive);
  EXPECT_GT(this_process().start_ticks, 0);
}

TEST(LookFor, CannotSeeOtherHostsOrContainers) {
  RunProcess elsewhere = this_process();
  elsewhere.host += "x";
  RunProcess container = this_process();
  container.process_space = "pid:[1]";

  EXPECT_EQ(look_for(elsewhere), Sight::unknown);
  EXPECT_EQ(look_for(container), Sight::unknown);
  EXPECT_EQ(look_for({}), Sight::unknown);
}

TEST(LookFor, AProcessIdUsedAgainIsAnotherProcess) {
  RunProcess earlier = this_process();
  earlier.start_ticks -= 1;

  EXPECT_EQ(look_for(earlier), Sight::gone);
}

TEST(LookFor, TheDeadAreGoneEvenBeforeTheirParentKnows) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  RunProcess process = this_process();
  process.pid = static_cast<int>(child);
  process.start_ticks = 0;

  EXPECT_EQ(look_for(process), Sight::gone);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(look_for(process), Sight::gone);
}

}  // namespace
}  // namespace dstune::run_process_test
