#include "core/config/command_line/hostfile.hpp"

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::hostfile_test {
namespace {

using testing_support::Faults;
using testing_support::faults_of;
using testing_support::TemporaryDirectory;
using testing_support::write_file;
using Hosts = std::vector<HostSlots>;

Faults faults_of_text(std::string_view text) {
  return faults_of([&] { parse_hostfile(text, "hosts"); });
}

TEST(ParseHostfile, ReadsOpenMpiSyntax) {
  const auto hostfile = parse_hostfile(
      "# the machines\n"
      "node1 slots=9 max_slots=16\n"
      "node2 slots = 4  # a small one\n"
      "node3\r\n"
      "\n"
      "\tnode4 max-slots=2 slots=2\n",
      "hosts");

  EXPECT_EQ(hostfile.hosts, (Hosts{{"node1", 9}, {"node2", 4}, {"node3", 1}, {"node4", 2}}));
  EXPECT_EQ(hostfile.total_slots(), 16);
  EXPECT_EQ(hostfile.workers(), 15);
  EXPECT_EQ(hostfile.workers_on_largest_host(), 8);
}

TEST(ParseHostfile, ReadsDeepSpeedSyntax) {
  const auto hostfile = parse_hostfile("worker-1 slots=8\nworker-2 slots=8", "hosts");

  EXPECT_EQ(hostfile.hosts, (Hosts{{"worker-1", 8}, {"worker-2", 8}}));
}

TEST(ParseHostfile, AddsUpLinesOfTheSameHost) {
  const auto hostfile = parse_hostfile("a\nb slots=2\na\na slots=3\n", "hosts");

  EXPECT_EQ(hostfile.hosts, (Hosts{{"a", 5}, {"b", 2}}));
}

TEST(ParseHostfile, TakesUsersAndAddresses) {
  const auto hostfile =
      parse_hostfile("me@node slots=2\n10.0.0.1\nfe80::1%eth0\n[2001:db8::1]", "h");

  EXPECT_EQ(hostfile.hosts,
            (Hosts{{"node", 2}, {"10.0.0.1", 1}, {"fe80::1%eth0", 1}, {"[2001:db8::1]", 1}}));
}

TEST(ParseHostfile, NamesEveryWrongLine) {
  EXPECT_EQ(
      faults_of_text("a slots=0\n"
                     "b slot=4\n"
                     "c slots=8 max_slots=4\n"
                     "d slots=many gpus=2\n"
                     "e:none\n"
                     "^f\n"
                     "g 8\n"
                     "user@\n"
                     "{\"a\": 1}\n"),
      (Faults{"line 1  has \"slots=0\"; accepted: slots=N with N from 1 to 1000000",
              "line 2  has \"slot=4\"; did you mean \"slots=N\"? accepted: slots=N, max_slots=N",
              "line 3  has slots=8 above max_slots=4",
              "line 4  has \"slots=many\"; accepted: slots=N with N from 1 to 1000000",
              "line 4  has \"gpus=2\"; accepted: slots=N, max_slots=N",
              "line 5  has \"e:none\" where a host is expected; accepted: \"host slots=8\"",
              "line 6  has \"^f\"; excluded and relative hosts are not supported here",
              "line 7  has \"8\"; accepted: slots=N, max_slots=N",
              "line 8  has \"user@\" where a host is expected; accepted: \"host slots=8\"",
              "line 9  has \"{\"a\":\" where a host is expected; accepted: \"host slots=8\"",
              "line 9  has \"1}\"; accepted: slots=N, max_slots=N"}));
}

TEST(ParseHostfile, TakesSlotsBehindAColon) {
  EXPECT_EQ(parse_hostfile("a:4\nb:2 slots=3\nfe80::1\n", "h").hosts,
            (Hosts{{"a", 4}, {"b", 3}, {"fe80::1", 1}}));
}

TEST(ParseHostfile, ExpandsSlurmsLists) {
  EXPECT_EQ(parse_hostfile("node[01-03,7] slots=2\nlogin,gpu[9-10]\n", "h").hosts,
            (Hosts{{"node01", 2},
                   {"node02", 2},
                   {"node03", 2},
                   {"node7", 2},
                   {"login", 1},
                   {"gpu9", 1},
                   {"gpu10", 1}}));
  EXPECT_EQ(parse_hostfile("r[1-2]n[1-2]", "h").hosts,
            (Hosts{{"r1n1", 1}, {"r1n2", 1}, {"r2n1", 1}, {"r2n2", 1}}));
}

TEST(ParseHostfile, RejectsListsWithoutAnEnd) {
  EXPECT_EQ(
      faults_of_text("node[5-2]"),
      Faults{"line 1  has \"node[5-2]\", which is not a list of at most 100000 hosts; accepted: "
             "\"node[01-04,07] slots=8\""});
  EXPECT_EQ(faults_of_text("n[1-999999999999999999]").size(), 1U);
  EXPECT_EQ(faults_of_text("n[1-9999][1-9999]").size(), 1U);
  EXPECT_EQ(faults_of_text("n[1-2],").size(), 1U);
  EXPECT_EQ(faults_of_text("n[1--2]").size(), 1U);
}

TEST(ParseHostfile, SkipsBlankLinesOfEveryKindAndAByteOrderMark) {
  EXPECT_EQ(parse_hostfile("\xEF\xBB\xBF"
                           "a\n\f\n\v\n \t\r\n",
                           "h")
                .hosts,
            (Hosts{{"a", 1}}));
}

TEST(ParseHostfile, RejectsASettingThatStandsTwice) {
  EXPECT_EQ(faults_of_text("a slots=2 slots=3"),
            Faults{"line 1  has slots= twice; keep one of them"});
  EXPECT_EQ(faults_of_text("a max-slots=9 max_slots=8").size(), 1U);
}

TEST(ParseHostfile, RejectsSlotsBeyondAnInteger) {
  EXPECT_EQ(
      faults_of_text("a slots=99999999999"),
      Faults{"line 1  has \"slots=99999999999\"; accepted: slots=N with N from 1 to 1000000"});
  EXPECT_EQ(faults_of_text("a slots=-1").size(), 1U);
  EXPECT_EQ(faults_of_text("a slots=").size(), 1U);
  EXPECT_EQ(faults_of_text("=8").size(), 1U);
}

TEST(ParseHostfile, RejectsAFileWithoutHosts) {
  EXPECT_EQ(faults_of_text("# nothing\n\n"),
            Faults{"file  names no host; accepted: lines such as \"host slots=8\""});
}

TEST(ParseHostfile, StopsWhereNobodyReadsOn) {
  std::string lines;
  std::string words = "a";
  for (int i = 0; i < 1000; ++i) {
    lines += "x=y\n";
    words += " b";
  }

  for (const auto& text : {lines, words}) {
    const auto faults = faults_of_text(text);

    ASSERT_EQ(faults.size(), 50U);
    EXPECT_EQ(faults.back(), "file  has more errors than these; the rest is not read");
  }
}

TEST(ParseHostfile, CountsRepeatedListsInTimeAndStopsAtAMillion) {
  std::string lists;
  for (int line = 0; line < 10; ++line) lists += "node[1-100000]\n";

  EXPECT_EQ(parse_hostfile(lists, "hosts").hosts.size(), 100'000U);
  EXPECT_EQ(faults_of_text(lists + "one-more\n"), Faults{"file  names more than 1000000 hosts"});
}

TEST(Hostfile, NeedsTwoSlotsForOneWorker) {
  const auto one = parse_hostfile("a", "hosts");
  const auto two = parse_hostfile("a\nb", "hosts");

  EXPECT_EQ(faults_of([&] { one.workers(); }),
            Faults{"file  has 1 slot; at least 2 are needed: rank 0 tunes, every other rank is a "
                   "worker"});
  EXPECT_EQ(two.workers(), 1);
}

TEST(ReadHostfile, NamesFilesThatCannotBeRead) {
  const TemporaryDirectory directory;
  write_file(directory / "hosts", "a slots=3\n");

  EXPECT_EQ(read_hostfile(directory / "hosts").workers(), 2);
  EXPECT_EQ(faults_of([&] { read_hostfile(directory / "absent"); }),
            Faults{"file  cannot be read: No such file or directory"});
  EXPECT_EQ(faults_of([&] { read_hostfile(directory.path()); }), Faults{"file  is a directory"});
}

}  // namespace
}  // namespace dstune::hostfile_test
