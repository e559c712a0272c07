#include "core/base/log.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace dstune::log_test {
namespace {

std::string written_by(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, HasPlainLines) {
  EXPECT_EQ(written_by([] {
              log_line("one");
              log_warning("two");
              log_error("three\033[2J");
              show_below_log("");
            }),
            "one\nwarning: two\nerror: three\\x1B[2J\n");
}

TEST(Log, LinesMayBeBrokenBetweenWords) {
  const auto text = written_by([] {
    break_log_lines_at(20);
    log_warning("one two three four five");
    break_log_lines_at(0);
    log_line("one two three four five");
  });

  EXPECT_EQ(text, "warning: one two\n  three four five\none two three four five\n");
}

TEST(Log, WrapsAWarningThatIsWiderThanALine) {
  const std::string word(30, 'w');
  const std::string path(120, 'p');
  std::string message = word;
  for (int i = 0; i < 4; ++i) message += " " + word;

  const std::string text = written_by([&] { log_warning(message + " " + path); });

  EXPECT_EQ(text, "warning: " + word + " " + word + "\n  " + word + " " + word + " " + word +
                      "\n  " + path + "\n");
}

TEST(Log, WhatIsShownBelowMovesDownWithEachLine) {
  constexpr const char* kErase = "\r\033[K";
  const std::string below = "\033[?7lrunning\033[?7h\r";

  EXPECT_EQ(written_by([] {
              show_below_log("running");
              log_line("one");
              show_below_log("");
              log_line("two");
            }),
            kErase + below + kErase + "one\n" + below + kErase + "two\n");
}

TEST(Log, WhatIsShownBelowIsOneLineThatTheTerminalDoesNotObey) {
  EXPECT_EQ(written_by([] {
              show_below_log("a\nb\033[2J");
              show_below_log("");
            }),
            "\r\033[K\033[?7la\\x0Ab\\x1B[2J\033[?7h\r\r\033[K");
}

}  // namespace
}  // namespace dstune::log_test
