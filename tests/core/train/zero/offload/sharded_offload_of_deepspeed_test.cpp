// Stage 3 with the optimizer in the host's memory, and with parameters there too, beside the real
// DeepSpeed: what a dry step has there, copies, and waits for, against
// tests/data/offload_fixture.json, which scripts/make_offload_fixture.py writes and describes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"
#include "tests/support/offload_phase.hpp"
#include "tests/support/offload_rows.hpp"

namespace dstune::sharded_offload_of_deepspeed_test {
namespace {

using test::PinnedRequests;
using test::RankOfRow;

constexpr Bytes kFlag = 1;
constexpr Bytes kNumber = 4;

/// Of a tensor that is in the place of all shards which are on the drive.
Bytes place_of_swapped(const json::object& row) {
  const json::value* const place = row.at("steady").at("host").as_object().if_contains("swapping");
  return place == nullptr ? 0 : place->to_number<Bytes>();
}

/// DeepSpeed has a flag and norms on the host beside, which are not counted here.
void expect_use(const HostUse& ours, const HostUse& deepspeeds, Bytes numbers) {
  EXPECT_EQ(ours.pinned, deepspeeds.pinned);
  EXPECT_EQ(ours.locked, deepspeeds.locked);
  EXPECT_LE(ours.pageable, deepspeeds.pageable);
  EXPECT_GE(ours.pageable + numbers, deepspeeds.pageable);
}

bool offloads_optimizer(const json::object& row) {
  return row.at("ds_config").at("zero_optimization").as_object().contains("offload_optimizer");
}

/// The sub-groups: the host reads a norm of each, or each is sent there after its update.
std::uint64_t sub_groups_of(const json::object& row) {
  std::uint64_t sub_groups = 0;
  for (const auto& phase : row.at("phases").as_object()) {
    if (offloads_optimizer(row)) {
      const json::object& reads = phase.value().at("reads").as_object();
      const json::value* const norms = reads.if_contains("sub-group norm");
      if (norms != nullptr) sub_groups += norms->to_number<std::uint64_t>();
      continue;
    }
    for (const json::value& line : phase.value().at("copies").as_array()) {
      const bool is_update = line.at(1) == "update" && line.at(2) == "D2H";
      if (is_update) sub_groups += line.at(5).to_number<std::uint64_t>();
    }
  }
  return sub_groups;
}

void expect_same_memory_at_first(const json::object& row, const PinnedRequests& device) {
  const json::object& setup = row.at("setup").as_object();
  expect_use(device.host_memory().use(), test::host_use(setup), kFlag + place_of_swapped(row));
  expect_use(device.host_memory().peak().at_peak,
             test::host_use(setup.at("at_host_peak").as_object()),
             kFlag + kNumber + place_of_swapped(row));
}

void expect_same_memory_at_last(const json::object& row, const PinnedRequests& device) {
  const HostUse step = test::host_use(row.at("step").at("at_host_peak").as_object());
  const Bytes norms = 16 * (sub_groups_of(row) + 1);  // of each sub-group, and their sum
  expect_use(device.peak(), step, norms + kFlag + place_of_swapped(row));

  const json::object& steady = row.at("steady").as_object();
  const Bytes pinned = test::sum_without_numbers(steady.at("pinned").as_object());
  // PyTorch's Adam counts its steps on the host.
  json::object on_host = steady.at("host").as_object();
  if (!offloads_optimizer(row)) on_host.erase("moments");
  const Bytes pageable = test::sum_without_numbers(on_host);
  Bytes locked = 0;
  if (const json::value* const buffers = steady.if_contains("locked")) {
    locked = test::sum_without_numbers(buffers->as_object());
  }
  EXPECT_EQ(device.host_memory().use(), (HostUse{pinned, pageable, locked}));
  std::vector<Bytes> pins;
  for (const json::value& pin : row.at("pins").as_array()) {
    pins.push_back(pin.at(1).to_number<Bytes>());
  }
  EXPECT_EQ(device.sizes(), pins);
  EXPECT_EQ(device.host_memory().held() - pageable - locked,
            row.at("pinned").at("taken").to_number<Bytes>());
}

/// @returns how many rows there are
std::size_t expect_dry_steps_of(std::string_view placement) {
  const std::vector<json::object> rows = test::offload_rows({placement});
  for (const json::object& row : rows) {
    SCOPED_TRACE(json::serialize(row.at("name")));

    RankOfRow rank(row);

    expect_same_memory_at_first(row, rank.device());
    rank.step();
    test::expect_same_step(rank.step(), row.at("phases").as_object(), rank.config().dtype,
                           offloads_optimizer(row));
    expect_same_memory_at_last(row, rank.device());
    EXPECT_EQ(rank.device().memory().use().total(),
              test::sum_without_numbers(row.at("steady").at("device").as_object()));
  }
  return rows.size();
}

// In the first step states are made, which no list of phases has as passes here.
void expect_same_first_step(const json::object& row, RankOfRow& rank) {
  using Drive = decltype(test::OffloadPhase::drive);
  EXPECT_EQ(test::phase_of(rank.device().ledger()).drive,
            test::recorded_drive(row.at("setup").at("drive").as_array()));
  const auto phases = rank.step();
  if (const json::value* const first = row.if_contains("first_phases")) {
    for (const auto& [name, ledger] : phases) {
      SCOPED_TRACE("first " + name);
      const json::value* const recorded = first->as_object().if_contains(name);
      EXPECT_EQ(
          test::phase_of(ledger).drive,
          recorded == nullptr ? Drive{} : test::recorded_drive(recorded->at("drive").as_array()));
    }
  }
  const Bytes norms = 16 * (sub_groups_of(row) + 1);
  expect_use(rank.device().peak(),
             test::host_use(row.at("first_step").at("at_host_peak").as_object()),
             norms + kFlag + place_of_swapped(row));
}

// Their names are "adamw_read_2_sub_groups_7_buffers".
TEST(ShardedOffloadOfDeepSpeed, HasAsManySwapBuffersAsItNeeds) {
  std::size_t tried = 0;
  for (const json::value& row : test::offload_deaths()) {
    const std::string name(row.at("name").as_string());
    const std::size_t end = name.find("_sub_groups_");
    if (end == std::string::npos) continue;
    SCOPED_TRACE(name);
    const json::object& asked = row.at("asked").as_object();
    StepConfig config = make_step_config(
        {{"zero_optimization",
          {{"stage", 3},
           {"offload_optimizer",
            {{"device", "nvme"},
             {"nvme_path", "/"},
             {"pipeline_read", asked.at("pipeline_read")},
             {"pipeline_write", asked.at("pipeline_write")}}}}},
         {"optimizer", {{"type", asked.at("optimizer")}, {"params", {{"lr", 1e-4}}}}}});
    const std::size_t begin = name.rfind('_', end - 1) + 1;
    const auto sub_groups = std::stoul(name.substr(begin, end - begin));

    const bool is_enough =
        asked.at("buffer_count").to_number<int>() >= swap_buffers_needed(config, sub_groups);

    EXPECT_EQ(is_enough, row.at("dies").as_object().empty());
    ++tried;
  }
  EXPECT_GT(tried, 80U);
}

/// How far DeepSpeed comes: "setup", or the number of a step; "" if it does not stop.
std::string where_it_stops(const json::object& row) {
  constexpr int kSteps = 3;
  std::string where = "setup";
  try {
    RankOfRow rank(row);
    for (int step = 0; step < kSteps; ++step) {
      where = std::to_string(step);
      rank.step();
    }
  } catch (const StepRefused&) {
    return where;
  }
  return "";
}

// Those whose names tell sub-groups are about the optimizer's buffers.
TEST(ShardedOffloadOfDeepSpeed, StopsWhereBuffersForParametersAreTooFewOrTooSmall) {
  std::size_t tried = 0;
  for (const json::value& row : test::offload_deaths()) {
    const std::string_view name(row.at("name").as_string());
    if (name.find("_sub_groups_") != std::string_view::npos) continue;
    SCOPED_TRACE(name);
    std::string expected;
    if (const json::value* const phase = row.at("dies").as_object().if_contains("phase")) {
      const std::string text(phase->as_string());
      expected = text.substr(0, text.find(' '));
    }

    EXPECT_EQ(where_it_stops(row.as_object()), expected);
    ++tried;
  }
  EXPECT_EQ(tried, 36U);
}

Bytes bytes_of_files(const json::object& row) {
  Bytes sum = 0;
  for (const auto& files : row.at("files").as_object()) {
    sum += files.value().at(1).to_number<Bytes>();
  }
  return sum;
}

/// @returns how many rows there are
std::size_t expect_dry_steps_on_a_drive(std::string_view placement) {
  const std::vector<json::object> rows = test::offload_rows({placement});
  for (const json::object& row : rows) {
    SCOPED_TRACE(json::serialize(row.at("name")));

    RankOfRow rank(row);

    expect_same_memory_at_first(row, rank.device());
    expect_same_first_step(row, rank);
    rank.step();
    test::expect_same_step(rank.step(), row.at("phases").as_object(), rank.config().dtype,
                           offloads_optimizer(row));
    expect_same_memory_at_last(row, rank.device());
    EXPECT_EQ(rank.device().host_memory().on_drive(), bytes_of_files(row));
    EXPECT_EQ(rank.device().memory().use().total(),
              test::sum_without_numbers(row.at("steady").at("device").as_object()));
    EXPECT_EQ(rank.device_after_backward(),
              test::sum_without_numbers(row.at("before_step").at("device").as_object()));
  }
  return rows.size();
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithTheOptimizerOnADrive) {
  EXPECT_EQ(expect_dry_steps_on_a_drive("stage3_nvme"), 23U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersOnADrive) {
  EXPECT_EQ(expect_dry_steps_on_a_drive("stage3_nvme_parameters"), 17U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithBothOnADrive) {
  EXPECT_EQ(expect_dry_steps_on_a_drive("stage3_nvme_both"), 18U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStep) { EXPECT_EQ(expect_dry_steps_of("stage3"), 18U); }

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithSubGroupsOnTheDevice) {
  EXPECT_EQ(expect_dry_steps_of("stage3_ratio"), 18U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersOnTheHost) {
  EXPECT_EQ(expect_dry_steps_of("stage3_parameters"), 19U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersOnTheHostAndSubGroupsOnTheDevice) {
  EXPECT_EQ(expect_dry_steps_of("stage3_parameters_ratio"), 13U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersAloneOnTheHost) {
  EXPECT_EQ(expect_dry_steps_of("stage3_parameters_alone"), 16U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithPersistentTensorsOneByOne) {
  EXPECT_EQ(expect_dry_steps_of("stage3_sequential"), 9U);
}

}  // namespace
}  // namespace dstune::sharded_offload_of_deepspeed_test
