#include "core/base/error.hpp"

#include <gtest/gtest.h>

namespace dstune::error_test {
namespace {

TEST(ConfigError, ShowsEveryProblemUnderItsSource) {
  const ConfigError error("config.json", {{"/a", "is 4; accepted: 0"}, {"--model", "is missing"}});

  const std::string message = error.what();

  EXPECT_EQ(message,
            "config.json: 2 problems\n"
            "  /a  is 4; accepted: 0\n"
            "  --model  is missing");
}

TEST(ConfigError, SaysProblemIfThereIsOne) {
  const ConfigError error("hosts", {{"line 3", "is wrong"}});

  const std::string message = error.what();

  EXPECT_EQ(message, "hosts: 1 problem\n  line 3  is wrong");
  EXPECT_EQ(error.problems(), (std::vector<Problem>{{"line 3", "is wrong"}}));
}

}  // namespace
}  // namespace dstune::error_test
