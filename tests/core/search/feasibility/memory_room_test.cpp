#include "core/search/feasibility/memory_room.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/search/feasibility/machine_support.hpp"

namespace dstune::memory_room_test {
namespace {

using namespace dstune::literals;
using test::cpu;
using test::worker;
using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<MemoryRoom>& rooms) {
  std::vector<std::string> names;
  for (const MemoryRoom& room : rooms) names.push_back(room.name);
  return names;
}

/// Three workers of a host: two in one task of a job, the third in another.
std::vector<WorkerInfo> tasks() {
  std::vector<WorkerInfo> workers;
  for (const char* task : {"1", "1", "2"}) {
    DeviceInfo device = cpu(24_GiB, 20_GiB);
    device.bounds = {{std::string("task ") + task, 1_GiB, 0, task},
                     {"job", 2_GiB, 0, "job"},
                     {"ulimit -v", 4_GiB, 1_GiB, ""}};
    workers.push_back(worker(static_cast<int>(workers.size()) + 1, "a", 3, {device}));
  }
  return workers;
}

std::vector<MemoryRoom> rooms_of(const WorkerInfo& one) {
  return memory_rooms(one, one.devices.front(), tasks());
}

TEST(MemoryRooms, AreOfAllWhoShareThem) {
  const auto rooms = rooms_of(tasks().front());

  EXPECT_THAT(names_of(rooms), ElementsAre("host a", "task 1", "job", "ulimit -v"));
  EXPECT_EQ(rooms[0].sharers, 3);
  EXPECT_EQ(rooms[1].sharers, 2);
  EXPECT_EQ(rooms[2].sharers, 3);
  EXPECT_EQ(rooms[3].sharers, 1);
  EXPECT_EQ(rooms[3].free, 3_GiB);
  EXPECT_EQ(narrowest_room(rooms).name, "task 1");
  EXPECT_EQ(narrowest_room(rooms_of(tasks().back())).name, "job");
}

TEST(MemoryRooms, OfAnotherHostAreOthers) {
  auto workers = tasks();
  workers[1].host = "b";

  EXPECT_EQ(memory_rooms(workers[0], workers[0].devices.front(), workers)[1].sharers, 1);
}

TEST(MemoryRoom, LeavesTheSystem15PercentOrWhatTheProcessesNeed) {
  const MemoryRoom large{"host a", 100_GiB, 99_GiB, 64_MiB, 2};
  const MemoryRoom small{"job", 400_MiB, 400_MiB, 64_MiB, 2};

  EXPECT_EQ(large.usable(), 85_GiB / 2);
  EXPECT_EQ(large.describe(), "85 % of the 100.00 GiB of host a, for 2 workers");
  EXPECT_EQ(small.usable(), (400_MiB - 3 * 64_MiB) / 2);
  EXPECT_EQ(small.describe(),
            "400.00 MiB of the 400.00 MiB of job are free, for 2 workers that each take 64.00 MiB "
            "besides their experiments");
}

TEST(MemoryRoom, LeavesWhatOthersHaveAndNeverLessThanNothing) {
  const MemoryRoom busy{"host a", 100_GiB, 10_GiB, 64_MiB, 2};
  EXPECT_EQ(busy.nominal(), 85_GiB / 2);
  EXPECT_EQ(busy.usable(), (10_GiB - 128_MiB) / 2);

  const MemoryRoom full{"job", 100_MiB, 0, 64_MiB, 2};
  EXPECT_EQ(full.nominal(), 0U);
  EXPECT_EQ(full.usable(), 0U);
}

TEST(ExceededRooms, NameTheWorstBoundOfAWorkerOnce) {
  EXPECT_THAT(exceeded_rooms("it is", 400_MiB, false, "cpu", tasks()), testing::IsEmpty());
  EXPECT_THAT(
      exceeded_rooms("it is", 600_MiB, false, "cpu", tasks()),
      ElementsAre("it is 600.00 MiB on each of 2 workers of a, more than the 1.00 GiB of task 1"));
  EXPECT_THAT(exceeded_rooms("it is", 3_GiB, false, "cpu", tasks()),
              ElementsAre(testing::HasSubstr("of task 1"), testing::HasSubstr("of job")));
}

}  // namespace
}  // namespace dstune::memory_room_test
