#include "kernels/cuda/libraries/library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::cuda::library_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(OpenLibrary, TakesTheFirstThatOpens) {
  Library library = open_library("C", "DSTUNE_C_LIB", {"/nowhere/libc.so.6", "libc.so.6"});

  EXPECT_EQ(library.problem, "");
  EXPECT_THAT(library.path, AllOf(StartsWith("/"), HasSubstr("libc.so.6")));
  EXPECT_NE(find_function(library, "malloc"), nullptr);
  EXPECT_EQ(library.problem, "");
}

TEST(OpenLibrary, SaysWhyNoneOpensAndWhatTheUserCanDo) {
  Library library = open_library("NCCL", "DSTUNE_NCCL_LIB", {"libnone.so.2", "/nowhere/l.so"});

  EXPECT_THAT(library.problem, AllOf(HasSubstr("NCCL is not usable: /nowhere/l.so: cannot open"),
                                     HasSubstr("DSTUNE_NCCL_LIB may name its file")));
  EXPECT_EQ(find_function(library, "malloc"), nullptr);
}

TEST(FindFunction, AMissingOneMakesTheLibraryTooOld) {
  Library library = open_library("C", "DSTUNE_C_LIB", {"libc.so.6"});

  EXPECT_EQ(find_function(library, "ncclCommSplit"), nullptr);
  EXPECT_EQ(find_function(library, "ncclCommAbort"), nullptr);
  EXPECT_THAT(library.problem, HasSubstr("libc.so.6 is too old: it has no ncclCommSplit"));
}

}  // namespace
}  // namespace dstune::cuda::library_test
