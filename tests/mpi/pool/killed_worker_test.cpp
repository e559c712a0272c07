// A program, not a gtest: after a kill -9 there is no MPI_Finalize and mpirun's exit code is the
// dead rank's, so CTest looks for the last line.
#include <csignal>
#include <cstdio>
#include <stdexcept>

#include <unistd.h>

#include "mpi/base/environment.hpp"
#include "tests/mpi/pool/pool_support.hpp"

namespace dstune {
namespace {

Outcome run(const Experiment& experiment, MpiGroup& group) {
  if (experiment.name == "killed" && group.rank() == 1) raise(SIGKILL);
  return test::measured(group.vote(true) ? group.size() : 0);
}

void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

void check_survival(MpiWorkerPool& pool) {
  pool.start(1, test::make_experiment("killed", 3), {1, 2, 3});
  const auto killed = test::wait_for(pool, 1);
  const auto* failed = std::get_if<Failed>(&killed[0].outcome);
  expect(failed != nullptr && failed->kind == FailureKind::worker_lost, "not worker_lost");
  expect(failed->reason.rfind("rank 2 on ", 0) == 0, "does not name the rank");
  expect(pool.size() == 2 && pool.idle().size() == 2, "the others did not come back");
  pool.start(2, test::make_experiment("next", 2), {1, 3});
  const auto next = test::wait_for(pool, 1);
  const auto* measured = std::get_if<Measured>(&next[0].outcome);
  expect(measured != nullptr && measured->steps == 2, "the survivors cannot work");
  expect(!pool.stop(), "stop() must say that a rank died");
}

[[noreturn]] void run_rank_zero(const Communicator& world) {
  try {
    MpiWorkerPool pool(world, PoolOptions{});
    check_survival(pool);
    std::puts("survivors finished");
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
  }
  std::fflush(stdout);
  _exit(0);
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  const dstune::Environment environment(&argc, &argv);
  const auto world = dstune::Communicator::duplicate(MPI_COMM_WORLD);
  if (world.rank() == 0) dstune::run_rank_zero(world);
  dstune::run_worker_loop(world, dstune::WorkerOptions{}, dstune::run);
  _exit(1);
}
