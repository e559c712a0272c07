#include "core/report/tables/predictions.hpp"

#include <gtest/gtest.h>

namespace dstune::predictions_test {
namespace {

TEST(PredictionText, HasOneUnit) {
  EXPECT_EQ(prediction_text(0.812, 0.0304, 0.8351),
            "predicted 812 +- 30 ms (90 %) from the others, measured 835 ms");
  EXPECT_EQ(prediction_text(12.34, 1.25, 9.5),
            "predicted 12.3 +- 1.2 s (90 %) from the others, measured 9.5 s");
  EXPECT_EQ(prediction_text(0.001234, 0.0001, 0.001),
            "predicted 1.23 +- 0.10 ms (90 %) from the others, measured 1.00 ms");
}

TEST(QualityText, SaysHowWell) {
  EXPECT_EQ(
      quality_text(
          {.count = 48, .median_error = 0.0312, .rank_correlation = 0.957, .inside_90 = 0.92}),
      "step times of 48 experiments, each predicted from the others: median error 3.1 %, "
      "rank correlation 0.96, 92 % inside the interval of 90 %");
}

TEST(QualityText, SaysThatIntervalsWereWidened) {
  const std::string text =
      quality_text({.count = 48, .median_error = 0.03, .inside_90 = 0.8, .widening = 1.34});

  EXPECT_TRUE(text.ends_with("80 % inside the interval of 90 %, which is 1.3 times wider for that"))
      << text;
}

TEST(QualityText, IsSilentAboutTwo) { EXPECT_EQ(quality_text({.count = 2}), ""); }

}  // namespace
}  // namespace dstune::predictions_test
