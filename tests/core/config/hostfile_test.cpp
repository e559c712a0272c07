#include "core/config/hostfile.hpp"

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune {
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
                     "e:8\n"
                     "^f\n"
                     "g 8\n"
                     "user@\n"
                     "{\"a\": 1}\n"),
      (Faults{"line 1  has \"slots=0\"; accepted: slots=N with N from 1 to 1000000",
              "line 2  has \"slot=4\"; did you mean \"slots=N\"? accepted: slots=N, max_slots=N",
              "line 3  has slots=8 above max_slots=4",
              "line 4  has \"slots=many\"; accepted: slots=N with N from 1 to 1000000",
              "line 4  has \"gpus=2\"; accepted: slots=N, max_slots=N",
              "line 5  has \"e:8\"; write \"e slots=8\"",
              "line 6  has \"^f\"; excluded and relative hosts are not supported here",
              "line 7  has \"8\"; accepted: slots=N, max_slots=N",
              "line 8  has \"user@\" where a host is expected; accepted: \"host slots=8\"",
              "line 9  has \"{\"a\":\" where a host is expected; accepted: \"host slots=8\"",
              "line 9  has \"1}\"; accepted: slots=N, max_slots=N"}));
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
}  // namespace dstune
