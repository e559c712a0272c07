#include "core/config/model/hub_cache.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::hub_cache_test {
namespace {

using testing_support::TemporaryDirectory;
using testing_support::write_file;

// NOLINTBEGIN(concurrency-mt-unsafe): one thread
class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"})
      unsetenv(name);
    setenv("HOME", "/home/me", 1);
  }
};

TEST_F(HubCache, IsWhereHuggingFaceHubKeepsIt) {
  EXPECT_EQ(hub_cache(), "/home/me/.cache/huggingface/hub");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(hub_cache(), "/xdg/huggingface/hub");
  setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(hub_cache(), "/home/me/hf/hub");
  setenv("HUGGINGFACE_HUB_CACHE", "/older", 1);
  EXPECT_EQ(hub_cache(), "/older");
  setenv("HF_HUB_CACHE", "", 1);
  EXPECT_EQ(hub_cache(), "/older");
  setenv("HF_HUB_CACHE", "/hub", 1);
  EXPECT_EQ(hub_cache(), "/hub");
}

TEST_F(HubCache, IsNowhereWithoutAHome) {
  unsetenv("HOME");

  EXPECT_EQ(hub_cache(), "");
}
// NOLINTEND(concurrency-mt-unsafe)

TEST(IsHubName, IsAnOwnerAndAName) {
  EXPECT_TRUE(is_hub_name("Qwen/Qwen2.5-7B"));
  for (const char* other : {"gpt2", "/gpt2", "a/", "a/b/c", "../a", "a/..", "./a", "a b/c", ""}) {
    EXPECT_FALSE(is_hub_name(other)) << other;
  }
}

TEST(FindInHubCache, FindsTheCommitOfMainInAnyCase) {
  const TemporaryDirectory cache;
  const std::string repository = "models--Org--Name-1--x";
  write_file(cache / (repository + "/refs/main"), "abc1\n");
  write_file(cache / (repository + "/snapshots/abc1/config.json"), "{}");
  write_file(cache / (repository + "/snapshots/ffff/config.json"), "{}");

  const auto found = find_in_hub_cache(cache.path(), "org/name-1--X");

  EXPECT_EQ(found, cache / (repository + "/snapshots/abc1/config.json"));
  EXPECT_EQ(hub_name_of(found), "Org/Name-1--x");
}

TEST(FindInHubCache, FindsNothingThatIsNotWhole) {
  const TemporaryDirectory cache;
  write_file(cache / "models--a--no-config/refs/main", "abc1");
  write_file(cache / "models--a--no-config/snapshots/abc1/model.safetensors", "");
  write_file(cache / "models--a--no-ref/snapshots/abc1/config.json", "{}");
  write_file(cache / "models--a--strange/refs/main", "../../..");
  write_file(cache / "config.json", "{}");

  for (const char* name : {"a/no-config", "a/no-ref", "a/strange", "a/none", "none"}) {
    EXPECT_EQ(find_in_hub_cache(cache.path(), name), "") << name;
  }
  EXPECT_EQ(find_in_hub_cache(cache / "none", "a/b"), "");
  EXPECT_EQ(find_in_hub_cache("", "a/b"), "");
}

TEST(HubNameOf, KnowsNoOtherPath) {
  EXPECT_EQ(hub_name_of("/models/gpt2/config.json"), "");
  EXPECT_EQ(hub_name_of("config.json"), "");
}

}  // namespace
}  // namespace dstune::hub_cache_test
