#include "mpi/environment.hpp"

#include <cstdlib>

#include <mpi.h>

#include "mpi/check.hpp"

namespace dstune {

Environment::Environment(int* argc, char*** argv) {
  // Open MPI turns it on by itself only where it knows of more ranks than slots, and a hostfile may
  // promise slots that the machine has no cores for.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  int provided = MPI_THREAD_SINGLE;
  DSTUNE_MPI_CHECK(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  live_ = true;
  if (provided < MPI_THREAD_FUNNELED) throw MpiError("MPI does not support MPI_THREAD_FUNNELED");
}

Environment::~Environment() {
  if (live_) MPI_Finalize();
}

void Environment::finalize() {
  if (!live_) return;
  live_ = false;
  DSTUNE_MPI_CHECK(MPI_Finalize());
}

}  // namespace dstune
