#include "mpi/base/launcher.hpp"

#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dstune::launcher_test {
namespace {

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",
    "PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID",
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",       "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS"};

/// The environment of a rank, in a process of its own: what `answer` returns there, as exit code.
template <class Answer>
int in_environment(std::initializer_list<std::pair<const char*, const char*>> variables,
                   Answer answer) {
  const pid_t child = fork();
  if (child == 0) {
    for (const char* name : kVariables) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    _exit(answer());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int rank_or_99() { return rank_of_launcher().value_or(99); }

/// Calls `answer` in a process whose ancestors have these names, the nearest first.
template <class Answer>
int below(std::initializer_list<const char*> names, Answer answer) {
  const pid_t child = fork();
  if (child == 0) {
    if (names.size() == 0) _exit(answer());
    prctl(PR_SET_NAME, *(names.end() - 1));
    // A list without its last name cannot be made of another: the depth is two at most.
    _exit(names.size() == 1 ? below({}, answer) : below({*names.begin()}, answer));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int distance_to(int ancestor) {
  if (ancestor == 0) return 0;
  return ancestor == getppid() ? 1 : 2;
}

TEST(Launcher, EachNamesTheRankBeforeMpiStarts) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID",
                           "FLUX_TASK_RANK", "SLURM_PROCID"}) {
    EXPECT_EQ(in_environment({{name, "3"}}, rank_or_99), 3) << name;
  }
}

TEST(Launcher, WithoutOneThereIsNoRank) { EXPECT_EQ(in_environment({}, rank_or_99), 99); }

TEST(Launcher, InsideASlurmJobTheRankIsTheLaunchersOwn) {
  EXPECT_EQ(in_environment({{"SLURM_PROCID", "0"}, {"PMI_RANK", "5"}}, rank_or_99), 5);
  EXPECT_EQ(in_environment({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "7"}}, rank_or_99), 7);
}

TEST(Launcher, TellsTheRanksOfThisHost) {
  const auto ranks = [] { return static_cast<int>(ranks_of_this_host()); };

  EXPECT_EQ(in_environment({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}, ranks), 4);
  EXPECT_EQ(in_environment({{"MPI_LOCALNRANKS", "6"}}, ranks), 6);
  EXPECT_EQ(in_environment({}, ranks), 0);
}

TEST(Launcher, TellsTheRanksThatItHasStarted) {
  const auto ranks = [] { return ranks_of_launcher().value_or(99); };

  EXPECT_EQ(in_environment({{"OMPI_COMM_WORLD_SIZE", "4"}}, ranks), 4);
  EXPECT_EQ(in_environment({{"PMI_SIZE", "6"}}, ranks), 6);
  EXPECT_EQ(in_environment({}, ranks), 99);
}

TEST(Launcher, MpirunOfOpenMpiIsBothTheParentAndTheCommand) {
  EXPECT_EQ(below({"mpirun"}, [] { return distance_to(find_launcher()); }), 1);
  EXPECT_EQ(below({"mpirun"}, [] { return distance_to(find_mpirun()); }), 1);
}

TEST(Launcher, HydrasDaemonIsTheParentAndItsMpiexecTheCommand) {
  EXPECT_EQ(
      below({"hydra_pmi_proxy", "mpiexec.hydra"}, [] { return distance_to(find_launcher()); }), 1);
  EXPECT_EQ(below({"hydra_pmi_proxy", "mpiexec.hydra"}, [] { return distance_to(find_mpirun()); }),
            2);
}

TEST(Launcher, OnAnotherHostThereIsADaemonAlone) {
  for (const char* daemon : {"orted", "hydra_pmi_proxy"}) {
    EXPECT_EQ(below({daemon, "sshd"}, [] { return distance_to(find_launcher()); }), 1) << daemon;
    EXPECT_EQ(below({daemon, "sshd"}, [] { return distance_to(find_mpirun()); }), 0) << daemon;
  }
}

}  // namespace
}  // namespace dstune::launcher_test
