#include "core/search/run/kept_machine.hpp"

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::kept_machine_test {
namespace {

using testing_support::TemporaryDirectory;

TEST(KeptMachine, IsNamedAfterTheDevice) {
  EXPECT_EQ(kept_machine_path("/cache", "cpu", "AMD EPYC 9B14"),
            "/cache/machines/cpu-amd-epyc-9b14.json");
  EXPECT_EQ(kept_machine_path("", "cpu", "AMD EPYC 9B14"), "");
}

TEST(KeptMachine, IsWhatWasLearntLast) {
  const TemporaryDirectory folder;
  const auto path = kept_machine_path(folder.path(), "cpu", "a processor");
  EXPECT_FALSE(read_kept_machine(path));

  LearntMachine learnt;
  learnt.measurements = 7;
  keep_machine(path, learnt);
  EXPECT_EQ(read_kept_machine(path), learnt);

  learnt.factors[0] = 2;
  keep_machine(path, learnt);
  EXPECT_EQ(read_kept_machine(path), learnt);
}

TEST(KeptMachine, ADamagedFileIsLeftAside) {
  const TemporaryDirectory folder;
  const auto path = kept_machine_path(folder.path(), "cpu", "a processor");
  keep_machine(path, {});
  write_file_atomically(path.string(), "{", Durability::process_crash);

  EXPECT_FALSE(read_kept_machine(path));
}

TEST(KeptMachine, WithoutAPlaceNothingIsKept) {
  keep_machine("", {});
  EXPECT_FALSE(read_kept_machine(""));
  keep_machine("/dev/null/machines/x.json", {});
  EXPECT_FALSE(read_kept_machine("/dev/null/machines/x.json"));
}

}  // namespace
}  // namespace dstune::kept_machine_test
