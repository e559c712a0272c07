#include "mpi/base/library.hpp"

#include <gtest/gtest.h>

namespace dstune::library_test {
namespace {

TEST(MpiLibrary, IsNamedWithItsVersionAlone) {
  EXPECT_EQ(mpi_library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"),
            "Open MPI v4.1.4");
  EXPECT_EQ(mpi_library_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7"),
            "MPICH 4.0.2");
  EXPECT_EQ(mpi_library_name("Intel(R) MPI Library 2021.9 for Linux* OS\n"),
            "Intel(R) MPI Library 2021.9 for Linux* OS");
}

TEST(MpiLibrary, OfThisProcessHasANameInItsText) {
  const std::string text = mpi_library_text();

  EXPECT_EQ(mpi_library(), mpi_library_name(text));
  EXPECT_EQ(is_open_mpi(), text.find("Open MPI") == 0);
}

}  // namespace
}  // namespace dstune::library_test
