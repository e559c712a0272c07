#include "mpi/base/environment.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <optional>

#include <mpi.h>

#include "mpi/base/check.hpp"
#include "mpi/base/library.hpp"

namespace dstune {

namespace {

/// The value of an MPI library variable that is true or false; none if it cannot be read.
std::optional<bool> read_flag(const char* name) {
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return std::nullopt;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return std::nullopt;
  std::array<unsigned char, 64> value{};  // Open MPI calls the variable an int but writes a bool
  const bool read = MPI_T_cvar_read(handle, value.data()) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  if (!read) return std::nullopt;
  return std::any_of(value.begin(), value.end(), [](unsigned char byte) { return byte != 0; });
}

}  // namespace

Environment::Environment(int* argc, char*** argv) {
  // Open MPI turns this setting on by itself only where it knows of more ranks than slots, and a
  // hostfile may promise slots for which the machine has no cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  int provided = MPI_THREAD_SINGLE;
  DSTUNE_MPI_CHECK(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  live_ = true;
  if (provided < MPI_THREAD_FUNNELED) throw MpiError("MPI does not support MPI_THREAD_FUNNELED");
}

Environment::~Environment() {
  if (live_ && std::uncaught_exceptions() == 0) MPI_Finalize();
}

bool Environment::mpirun_survives_deaths() {
  // Other libraries lack the setting, and MPICH 4.0 ends MPI_Init by a segmentation fault once the
  // tool interface was started and finalized.
  if (!is_open_mpi()) return false;
  int provided = MPI_THREAD_SINGLE;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return false;
  const bool survives = read_flag("orte_abort_on_non_zero_status").value_or(true) == false;
  MPI_T_finalize();
  return survives;
}

void Environment::finalize() {
  if (!live_) return;
  live_ = false;
  DSTUNE_MPI_CHECK(MPI_Finalize());
}

}  // namespace dstune
