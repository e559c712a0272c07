#include "mpi/base/bundle.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace dstune::bundle_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

void make_settings(const fs::path& root) {
  fs::create_directories(root / "etc" / "openmpi");
  std::ofstream(root / "etc" / "openmpi" / "openmpi-mca-params.conf") << "\n";
}

TEST(BundleVariables, PointIntoTheBundleAroundTheProgram) {
  const testing_support::TemporaryDirectory directory;
  const fs::path root = directory.path();
  fs::create_directories(root / "lib" / "pmix");
  make_settings(root);
  std::ofstream(root / "MANIFEST") << "\n";

  EXPECT_THAT(bundle_variables(root / "bin" / "dstune-mpi"),
              ElementsAre(Pair("OPAL_PREFIX", root.string()),
                          Pair("OPAL_SYSCONFDIR", (root / "etc" / "openmpi").string()),
                          Pair("PMIX_PKGLIBDIR", (root / "lib" / "pmix").string())));
}

TEST(BundleVariables, SayNothingOfPmixWhereOpenMpiHasItInside) {
  const testing_support::TemporaryDirectory directory;
  const fs::path root = directory.path();
  make_settings(root);
  std::ofstream(root / "MANIFEST") << "\n";

  EXPECT_THAT(bundle_variables(root / "bin" / "dstune-mpi"),
              ElementsAre(Pair("OPAL_PREFIX", root.string()),
                          Pair("OPAL_SYSCONFDIR", (root / "etc" / "openmpi").string())));
}

// An installation under /usr has /usr/etc/openmpi at most.
TEST(BundleVariables, AreNoneWithoutAllOfTheBundle) {
  const testing_support::TemporaryDirectory directory;
  const fs::path root = directory.path();
  const fs::path program = root / "bin" / "dstune-mpi";
  EXPECT_THAT(bundle_variables(program), IsEmpty());
  make_settings(root);
  fs::create_directories(root / "lib" / "pmix");
  EXPECT_THAT(bundle_variables(program), IsEmpty());
  fs::remove_all(root / "etc");
  std::ofstream(root / "MANIFEST") << "\n";
  EXPECT_THAT(bundle_variables(program), IsEmpty());
}

TEST(UseBundledMpi, LeavesTheVariablesAloneOutsideOfABundle) {
  setenv("OPAL_PREFIX", "/some/where", 1);

  use_bundled_mpi();

  EXPECT_STREQ(std::getenv("OPAL_PREFIX"), "/some/where");
  unsetenv("OPAL_PREFIX");
}

}  // namespace
}  // namespace dstune::bundle_test
