#include "kernels/cuda/libraries/library_files.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace dstune::cuda::library_files_test {
namespace {

using testing::ElementsAre;
using testing_support::TemporaryDirectory;

/// Makes the file with its folders.
std::string put(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "a library";
  return path;
}

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
}

/// Without the dynamic linker's own, and without what the machine of the test has installed.
std::vector<std::string> files_below(const TemporaryDirectory& root, const Environment& environment,
                                     const std::string& stem = "nccl", int version = 2) {
  std::vector<std::string> found;
  for (const auto& file : library_files(stem, version, environment)) {
    if (file.starts_with(root.path())) found.push_back(file);
  }
  return found;
}

TEST(LibraryFiles, TheDynamicLinkerIsAskedFirst) {
  EXPECT_EQ(library_files("nccl", 2, environment_of({})).front(), "libnccl.so.2");
}

TEST(LibraryFiles, TheFileThatTheUserNamesIsTheOnlyOne) {
  EXPECT_THAT(
      library_files("cublasLt", 13, environment_of({{"DSTUNE_CUBLASLT_LIB", "/my/lib.so"}})),
      ElementsAre("/my/lib.so"));
}

TEST(LibraryFiles, ToolkitsComeBeforePythonsPackages) {
  const TemporaryDirectory root;
  const auto wheel = put(root / "venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const auto toolkit = put(root / "cuda/lib64/libnccl.so.2");

  EXPECT_THAT(files_below(root, environment_of({{"VIRTUAL_ENV", root / "venv"},
                                                {"CUDA_HOME", root / "cuda"}})),
              ElementsAre(toolkit, wheel));
}

TEST(LibraryFiles, EveryPackageOfNvidiaIsLookedAt) {
  const TemporaryDirectory root;
  const auto file = put(root / "p/nvidia/cu13/lib/libcublasLt.so.13");
  put(root / "p/nvidia/cublas/lib/libcublasLt.so.12");

  EXPECT_THAT(files_below(root, environment_of({{"PYTHONPATH", "/nowhere:" + (root / "p")}}),
                          "cublasLt", 13),
              ElementsAre(file))
      << "of another version they are of no use";
}

TEST(LibraryFiles, ThePythonOnThePathHasPackagesToo) {
  const TemporaryDirectory root;
  put(root / "base/bin/python3.11");
  std::filesystem::create_directories(root / "venv/bin");
  std::filesystem::create_symlink(root / "base/bin/python3.11", root / "venv/bin/python3");
  const auto own = put(root / "venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const auto behind = put(root / "base/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2");

  EXPECT_THAT(files_below(root, environment_of({{"PATH", "/nowhere:" + (root / "venv/bin")}})),
              ElementsAre(own, behind));
}

TEST(LibraryFiles, PackagesOfTheUserAndOfCondaCount) {
  const TemporaryDirectory root;
  const auto conda = put(root / "c/lib/python3.10/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const auto user =
      put(root / "h/.local/lib/python3.10/site-packages/nvidia/nccl/lib/libnccl.so.2");

  EXPECT_THAT(
      files_below(root, environment_of({{"CONDA_PREFIX", root / "c"}, {"HOME", root / "h"}})),
      ElementsAre(conda, user));
}

}  // namespace
}  // namespace dstune::cuda::library_files_test
