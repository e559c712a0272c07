#include "core/config/host/find_host_profile.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::find_host_profile_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::write_file;

constexpr const char* kDevice = "Intel(R) Xeon(R)  Processor @ 2.50GHz";

class FindHostProfile : public testing::Test {
 protected:
  FindHostProfile() { std::filesystem::create_directories(machine()); }

  std::filesystem::path machine() const {
    return places_.cache / "cpu-intel-r-xeon-r-processor-2-50ghz";
  }
  /// A profile whose collective tells it from others.
  static void write(const std::filesystem::path& path, int collective, int ranks,
                    const std::string& date = "2026-11-23", const std::string& backend = "cpu",
                    int threads = 1) {
    write_file(path, concat(R"({"gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": )",
                            collective, R"(, "optimizer_tensor_us": 1, "synchronization_us": 1,
        "measured_on": {"ranks": )",
                            ranks, R"(, "backend": ")", backend, R"(", "date": ")", date,
                            R"("}, "products": {"fp32": {"threads": )", threads,
                            R"(, "gflop_per_s": 50}}})"));
  }
  FoundProfile find(int ranks = 2, int threads = 1) const {
    return find_host_profile(places_, "cpu", kDevice, ranks, threads);
  }
  /// The collective of the profile that was found, or -1.
  double found(int ranks = 2, int threads = 1) const {
    const auto overhead = find(ranks, threads).overhead;
    return overhead ? overhead->at(HostEvent::collective) * 1e6 : -1;
  }

  testing_support::TemporaryDirectory folder_;
  ProfilePlaces places_{std::filesystem::path(folder_ / "results") / "host_overhead.json",
                        std::filesystem::path(folder_ / "cache")};
};

TEST_F(FindHostProfile, FindsNothingWhereThereIsNothing) {
  EXPECT_EQ(found(), -1);
  EXPECT_THAT(find().warnings, IsEmpty());
  EXPECT_FALSE(find_host_profile({}, "cpu", kDevice, 2, 1).overhead);
}

TEST_F(FindHostProfile, PrefersTheRunsOwn) {
  std::filesystem::create_directories(places_.of_run.parent_path());
  write(machine() / "2-ranks.json", 7, 2, "2027-01-01");
  write(places_.of_run, 5, 8, "2026-01-01");

  EXPECT_DOUBLE_EQ(found(), 5);
}

TEST_F(FindHostProfile, PrefersAsManyRanksThenTheNewest) {
  write(machine() / "2-ranks-a.json", 1, 2, "2026-11-20");
  write(machine() / "2-ranks-b.json", 2, 2, "2026-11-22");
  write(machine() / "2-ranks-c.json", 3, 2, "2026-11-21");
  write(machine() / "4-ranks.json", 4, 4, "2026-11-23");

  EXPECT_DOUBLE_EQ(found(2), 2);
  EXPECT_DOUBLE_EQ(found(4), 4);
  EXPECT_DOUBLE_EQ(found(3), 4);
}

TEST_F(FindHostProfile, PrefersAsManyRanksThenAsManyThreadsThenTheNewest) {
  write(machine() / "2-ranks.json", 1, 2, "2026-11-23", "cpu", 1);
  write(machine() / "2-ranks-4-threads.json", 2, 2, "2026-11-20", "cpu", 4);
  write(machine() / "3-ranks-8-threads.json", 3, 3, "2026-11-21", "cpu", 8);

  EXPECT_DOUBLE_EQ(found(2, 4), 2);
  EXPECT_DOUBLE_EQ(found(2, 1), 1);
  EXPECT_DOUBLE_EQ(found(2, 8), 1);
  EXPECT_DOUBLE_EQ(found(4, 4), 2);
}

TEST_F(FindHostProfile, OfAnotherMachineIsNotThisOnes) {
  const auto other = places_.cache / "cpu-some-amd";
  std::filesystem::create_directories(other);
  write(other / "2-ranks.json", 1, 2);

  EXPECT_EQ(found(), -1);
}

TEST_F(FindHostProfile, LeavesABrokenOneAsideAndSaysSo) {
  write(machine() / "2-ranks-good.json", 3, 2, "2026-01-01");
  write_file(machine() / "2-ranks-bad.json", R"({"gradient_hook_us": "fast"})");

  EXPECT_DOUBLE_EQ(found(), 3);
  EXPECT_THAT(find().warnings, ElementsAre(HasSubstr("2-ranks-bad.json")));
  EXPECT_THAT(find().warnings, ElementsAre(HasSubstr("/gradient_hook_us")));
}

TEST_F(FindHostProfile, LeavesOneOfAnotherBackendAside) {
  std::filesystem::create_directories(places_.of_run.parent_path());
  write(places_.of_run, 5, 2, "2026-01-01", "cuda");

  EXPECT_EQ(found(), -1);
  EXPECT_THAT(find().warnings, ElementsAre(HasSubstr("measured with cuda, not with cpu")));
}

TEST(MachineKey, IsReadable) {
  EXPECT_EQ(machine_key("cpu", "Intel(R) Xeon(R) Processor"), "cpu-intel-r-xeon-r-processor");
  EXPECT_EQ(machine_key("cuda", "NVIDIA H200"), "cuda-nvidia-h200");
}

TEST(ProfilePlaces, AreTheResultsAndTheUsersCache) {
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread
  setenv("HOME", "/home/me", 1);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(profile_places("r").cache, "/home/me/.cache/dstune-mpi/profiles");
  EXPECT_EQ(profile_places("r").of_run, "r/host_overhead.json");

  setenv("XDG_CACHE_HOME", "/scratch/cache", 1);
  EXPECT_EQ(profile_places("r").cache, "/scratch/cache/dstune-mpi/profiles");

  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(profile_places("r").cache, "");
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace dstune::find_host_profile_test
