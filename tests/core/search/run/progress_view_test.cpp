#include "core/search/run/progress_view.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace dstune::progress_view_test {
namespace {

/// What a view writes that was asked for `style`.
std::string written(ProgressStyle style) {
  Progress progress(Metric::throughput);
  progress.begins("z1_gas1_tmbspg2", 0);
  testing::internal::CaptureStderr();
  {
    ProgressView view(style, progress);
    view.refresh(2);
    view.refresh(2);  // at once: nothing new for people
    view.say("an event");
    view.refresh(2);  // the line is of what runs now: at once
  }
  return testing::internal::GetCapturedStderr();
}

TEST(ProgressView, OnATerminalRewritesALineBelowTheEvents) {
  const std::string below = "\033[?7l[0 2s] z1_gas1_tmbspg2 since 2 s\033[?7h\r";

  EXPECT_EQ(written(ProgressStyle::terminal),
            "\r\033[K" + below + "\r\033[Kan event\n" + "\r\033[K" + below + "\r\033[K");
}

TEST(ProgressView, ElsewhereHasALineForEachEventAndNothingElse) {
  EXPECT_EQ(written(ProgressStyle::lines), "an event\n");
  EXPECT_EQ(written(ProgressStyle::automatic), "an event\n") << "standard error is a file here";
}

TEST(ProgressView, SaysNothingIfAsked) { EXPECT_EQ(written(ProgressStyle::none), ""); }

}  // namespace
}  // namespace dstune::progress_view_test
