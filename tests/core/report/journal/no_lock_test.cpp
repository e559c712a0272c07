// A file system that locks no files: this program's own flock() says so.

#include <cerrno>
#include <string>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/journal/journal.hpp"
#include "tests/core/report/records.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::no_lock_test {

int answer_of_flock = 0;  // errno; 0: the system's own

namespace {

using testing_support::make_experiment;
using testing_support::make_identity;
using testing_support::MemoryDirectory;

class NoLock : public testing::TestWithParam<int> {
 protected:
  NoLock() { answer_of_flock = GetParam(); }
  ~NoLock() override { answer_of_flock = 0; }

  Journal open(Journal::Mode mode) {
    return {folder_ / "journal.jsonl", mode, make_identity(), false, 0, this_process(), [this] {
              return another_run_lives(folder_.path());
            }};
  }

  /// Another process's sign of life, `age` ago.
  void write_status(const RunProcess& process, RunState state, int age_s) {
    RunStatus status = stamped({});
    status.state = state;
    status.process = process;
    status.heartbeat -= age_s;
    write_status_file(folder_ / "status.json", status);
  }
  static RunProcess parent() {
    RunProcess process = this_process();
    process.pid = ::getppid();
    process.start_ticks = 0;
    return process;
  }
  static RunProcess elsewhere() {
    RunProcess process = this_process();
    process.host = "another-host";
    return process;
  }

  MemoryDirectory folder_;
};

TEST_P(NoLock, AFolderOfNobodyIsTaken) {
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(open(Journal::Mode::create));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("on a file system without"),
            std::string::npos);
}

TEST_P(NoLock, ALivingRunsFolderIsNot) {
  open(Journal::Mode::create);

  for (const RunProcess& process : {parent(), elsewhere()}) {
    write_status(process, RunState::running, 5);
    EXPECT_TRUE(another_run_lives(folder_.path()));
    EXPECT_THROW(open(Journal::Mode::resume), ConfigError);
    EXPECT_THROW(
        check_existing_results(folder_.path(), folder_ / "exps", ExistingResults::overwrite),
        ConfigError);
  }
}

TEST_P(NoLock, ADeadRunsFolderIsTaken) {
  open(Journal::Mode::create);

  write_status(elsewhere(), RunState::running, 61);
  EXPECT_NO_THROW(open(Journal::Mode::resume));
  write_status(elsewhere(), RunState::interrupted, 1);
  EXPECT_NO_THROW(open(Journal::Mode::resume));
  write_status(this_process("/tmp/mine"), RunState::running, 1);
  EXPECT_NO_THROW(open(Journal::Mode::resume));
  write_file_atomically(folder_ / "status.json", "{\"schema\":2");
  EXPECT_NO_THROW(open(Journal::Mode::resume));
}

TEST_P(NoLock, OfTwoThatBeganTogetherOneEnds) {
  Journal journal = open(Journal::Mode::create);
  journal.started(make_experiment(0, 1), {1, 2});
  write_status(elsewhere(), RunState::running, 0);

  EXPECT_FALSE(journal.is_in_place());
  EXPECT_THROW(journal.started(make_experiment(0, 2), {1, 2}), Error);
}

INSTANTIATE_TEST_SUITE_P(Errors, NoLock, testing::Values(ENOLCK, EOPNOTSUPP, ENOSYS));

}  // namespace
}  // namespace dstune::no_lock_test

// In place of the C library's, as far as this program calls it.
extern "C" int flock(int file, int operation) noexcept {
  if (dstune::no_lock_test::answer_of_flock == 0) {
    return static_cast<int>(::syscall(SYS_flock, file, operation));
  }
  errno = dstune::no_lock_test::answer_of_flock;
  return -1;
}
