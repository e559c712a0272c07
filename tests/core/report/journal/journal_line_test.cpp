#include "core/report/journal/journal_line.hpp"

#include <string>

#include <boost/crc.hpp>
#include <gtest/gtest.h>

namespace dstune::journal_line_test {
namespace {

const json::object kContent = {{"schema", 3}, {"type", "stopped"}, {"at_s", 1.5}};

TEST(SealLine, EndsInTheChecksumOfAllBeforeIt) {
  const std::string line = seal_line(kContent);

  // python3 -c 'import zlib; print("%08x" % zlib.crc32(b"{\"schema\":3,..."))'
  EXPECT_EQ(line, R"({"schema":3,"type":"stopped","at_s":1.5,"crc32":"d9c2b09a"})");
}

TEST(SealLine, WritesTheUsualCrc32WhateverTheLength) {
  for (std::size_t length = 0; length < 40; ++length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + (7 * i + length) % 26);
    const std::string line = seal_line({{"x", text}});
    boost::crc_32_type expected;
    expected.process_bytes(line.data(), line.find(R"(,"crc32")"));

    const std::string digits = line.substr(line.size() - 10, 8);

    EXPECT_EQ(std::stoul(digits, nullptr, 16), expected.checksum()) << line;
  }
}

TEST(OpenLine, ReadsWhatWasSealed) {
  const JournalLine line = open_line(seal_line(kContent));

  ASSERT_TRUE(line.content);
  EXPECT_TRUE(line.sealed);
  EXPECT_EQ(line.content->at("at_s"), 1.5);
}

TEST(OpenLine, NoticesEveryChangedBit) {
  const std::string line = seal_line(kContent);

  for (std::size_t i = 0; i < 8 * line.size(); ++i) {
    std::string changed = line;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));

    const JournalLine opened = open_line(changed);
    EXPECT_FALSE(opened.sealed) << changed;
    // The key itself may be hit: then no line of schema 3 is believed without a checksum.
    EXPECT_TRUE(!opened.content || opened.content->at("schema") == 3) << changed;
  }
}

TEST(OpenLine, SaysWhatIsWrong) {
  const std::string line = seal_line(kContent);
  std::string digit = line;
  digit[digit.find("1.5")] = '7';

  EXPECT_EQ(open_line(digit).damage, "its checksum does not match");
  EXPECT_EQ(open_line(line.substr(0, line.size() - 1)).damage, "its checksum is damaged");
  EXPECT_EQ(open_line(line.substr(0, 20)).damage, "it is not a JSON object");
  EXPECT_EQ(open_line(std::string(4096, '\0')).damage, "it holds 4096 zero bytes");
  EXPECT_EQ(open_line("[1]").damage, "it is not a JSON object");
}

TEST(OpenLine, ALineOfSchema2HasNoChecksum) {
  const JournalLine line = open_line(R"({"schema":2,"type":"stopped","at_s":1.5})");

  EXPECT_TRUE(line.content);
  EXPECT_FALSE(line.sealed);
}

TEST(IsTornLine, TellsABeginningFromSomethingElse) {
  const std::string line = seal_line(kContent);

  for (std::size_t size = 0; size <= line.size(); ++size) {
    EXPECT_TRUE(is_torn_line(line.substr(0, size))) << size;
  }
  EXPECT_FALSE(is_torn_line(line + "x"));
  EXPECT_FALSE(is_torn_line(line.substr(0, 30) + std::string(2, '\0')));
  EXPECT_FALSE(is_torn_line("notes of mine"));
}

}  // namespace
}  // namespace dstune::journal_line_test
