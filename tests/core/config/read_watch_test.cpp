#include "core/config/read_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"

namespace dstune::read_watch_test {
namespace {

using namespace rules;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr KeyRule kRules[] = {any("preflight"), any("exclude")};
constexpr Section kSection{.rules = kRules};

struct Watch {
  TuningConfig config;
  std::string fault;
};

Watch read(const std::string& text) {
  Watch watch;
  Problems problems("config.json");
  read_watch(SectionReader(parse_json(text), kSection, "/dstune", problems), watch.config,
             problems);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    watch.fault = error.what();
  }
  return watch;
}

TEST(ReadWatch, ChecksTheMachineUnlessToldNotTo) {
  EXPECT_EQ(read("{}").config.preflight, Preflight::on);
  EXPECT_EQ(read(R"({"preflight": false})").config.preflight, Preflight::off);
  EXPECT_EQ(read(R"({"preflight": "only"})").config.preflight, Preflight::only);
  EXPECT_THAT(read(R"({"preflight": "once"})").fault,
              HasSubstr("/dstune/preflight  is \"once\"; accepted: true, false, \"only\""));
}

TEST(ReadWatch, ExcludesOneOrSeveral) {
  EXPECT_THAT(read("{}").config.exclude, IsEmpty());
  EXPECT_THAT(read(R"({"exclude": "nodeA"})").config.exclude, ElementsAre("nodeA"));
  EXPECT_THAT(read(R"({"exclude": 3})").config.exclude, ElementsAre("rank 3"));
  EXPECT_THAT(read(R"({"exclude": [3, "rank 4", "nodeB:1"]})").config.exclude,
              ElementsAre("rank 3", "rank 4", "nodeB:1"));
  EXPECT_THAT(read(R"({"exclude": [-1, true, ""]})").fault, HasSubstr("3 problems"));
}

}  // namespace
}  // namespace dstune::read_watch_test
