#include "core/model/parameter_text.hpp"

#include <gtest/gtest.h>

namespace dstune::parameter_text_test {
namespace {

TEST(ParameterText, CountsHaveThreeDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(648), "648");
  EXPECT_EQ(format_count(54'528), "54.5 k");
  EXPECT_EQ(format_count(20'185'088), "20.2 M");
  EXPECT_EQ(format_count(124'439'808), "124 M");
  EXPECT_EQ(format_count(7'635'801'600), "7.64 B");
  EXPECT_EQ(format_count(1'000'000'000'000), "1.00 T");
}

TEST(ParameterText, RoundingUpGoesToTheNextUnit) {
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(9'995), "10.0 k");
  EXPECT_EQ(format_count(99'950), "100 k");
  EXPECT_EQ(format_count(999'499), "999 k");
  EXPECT_EQ(format_count(999'500), "1.00 M");
}

TEST(ParameterText, FrozenParametersShowInTheNumberOfTrainedOnes) {
  EXPECT_EQ(parameter_text(124'439'808, 124'439'808), "124 M parameters");
  EXPECT_EQ(parameter_text(7'635'801'600, 20'185'088), "7.64 B parameters, 20.2 M trained");
}

}  // namespace
}  // namespace dstune::parameter_text_test
