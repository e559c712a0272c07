#include "core/base/progress_line.hpp"

#include <string>

#include <gtest/gtest.h>

#include "core/base/text.hpp"

namespace dstune::progress_line_test {
namespace {

class ProgressLineTest : public ::testing::Test {
 protected:
  ProgressOutput output(bool is_terminal) {
    return {is_terminal, [this] { return now_; },
            [this, is_terminal](std::string_view text) {
              text_ += is_terminal ? concat("\r\033[K", text) : concat(text, "\n");
            }};
  }

  Seconds now_ = 100;
  std::string text_;
};

TEST_F(ProgressLineTest, ShortWorkIsSilent) {
  {
    ProgressLine line("dry runs", 3, output(true));
    line.advance();
    now_ += 1.9;
    line.advance();
    line.advance();
  }

  EXPECT_EQ(text_, "");
}

TEST_F(ProgressLineTest, ALogHasALineEveryFiveSeconds) {
  {
    ProgressLine line("dry runs", 20, output(false));
    for (int i = 0; i < 12; ++i) {
      now_ += 1;
      line.advance();
    }
  }

  EXPECT_EQ(text_, "dry runs 2 of 20\ndry runs 7 of 20\ndry runs 12 of 20\n");
}

TEST_F(ProgressLineTest, ATerminalHasOneLineThatIsGoneAtTheEnd) {
  {
    ProgressLine line("dry runs", 20, output(true));
    now_ += 2;
    line.advance();
    line.advance();
    now_ += 0.5;
    line.advance();
  }

  EXPECT_EQ(text_, "\r\033[Kdry runs 1 of 20\r\033[Kdry runs 3 of 20\r\033[K");
}

TEST_F(ProgressLineTest, WhatIsDoneIsNotSaid) {
  ProgressLine line("dry runs", 1, output(false));
  now_ += 60;
  line.advance();

  EXPECT_EQ(text_, "");
}

}  // namespace
}  // namespace dstune::progress_line_test
