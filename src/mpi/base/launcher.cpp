#include "mpi/base/launcher.hpp"

#include <cstdlib>

namespace dstune {

std::string launcher_folder() {
  const char* folder =
      std::getenv("OMPI_MCA_orte_jobfam_session_dir");  // NOLINT(concurrency-mt-unsafe)
  return folder == nullptr ? "" : folder;
}

}  // namespace dstune
