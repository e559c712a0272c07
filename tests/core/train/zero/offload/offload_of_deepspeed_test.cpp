// What an offloaded step of stages 1 and 2 holds, copies, waits for and reads, beside the real
// DeepSpeed's: tests/data/offload_fixture.json, written by scripts/make_offload_fixture.py.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/support/offload_phase.hpp"
#include "tests/support/offload_rows.hpp"

namespace dstune::offload_of_deepspeed_test {
namespace {

using test::RankOfRow;

/// PyTorch keeps a few numbers of its own on the host, such as a norm or a step's count.
constexpr Bytes kNumbers = 200;

std::vector<json::object> rows() {
  return test::offload_rows({"stage1", "stage2", "stage1_fp32_sums", "stage2_fp32_sums"});
}

void expect_near(Bytes ours, Bytes theirs) {
  EXPECT_LE(ours, theirs);
  EXPECT_LE(theirs, ours + kNumbers);
}

class OffloadOfDeepSpeed : public testing::TestWithParam<json::object> {};

INSTANTIATE_TEST_SUITE_P(Rows, OffloadOfDeepSpeed, testing::ValuesIn(rows()), [](const auto& row) {
  return std::string(row.param.at("name").as_string());
});

TEST_P(OffloadOfDeepSpeed, HoldsTheSameBytesOfTheHost) {
  const json::object& row = GetParam();
  RankOfRow rank(row);
  const json::object& setup = row.at("setup").as_object();
  const HostMemory& memory = rank.device().host_memory();
  EXPECT_EQ(memory.use(), test::host_use(setup));
  EXPECT_EQ(memory.peak().at_peak.total(),
            test::host_use(setup.at("at_host_peak").as_object()).total());

  rank.step();
  rank.step();

  const json::object& steady = row.at("steady").as_object();
  EXPECT_EQ(memory.use().pinned, test::sum_without_numbers(steady.at("pinned").as_object()));
  expect_near(memory.use().pageable, test::sum_without_numbers(steady.at("host").as_object()));
  const json::object& in_step = row.at("step").at("at_host_peak").as_object();
  expect_near(rank.device().peak().total(), test::host_use(in_step).total());
  EXPECT_EQ(memory.held() - memory.use().pageable, row.at("pinned").at("taken").to_number<Bytes>());
}

TEST_P(OffloadOfDeepSpeed, CopiesWaitsReadsAndComputesTheSame) {
  const json::object& row = GetParam();
  RankOfRow rank(row);
  rank.step();

  const std::map<std::string, Ledger> phases = rank.step();

  test::expect_same_step(phases, row.at("phases").as_object(), rank.config().dtype);
}

TEST(OffloadFixture, HasRowsOfEachStageTypeAndNumberOfRanks) {
  std::map<std::string, int> seen;
  for (const json::object& row : rows()) {
    const StepConfig config = make_step_config(row.at("ds_config").as_object());
    ++seen[concat("stage ", config.stage)];
    ++seen[concat(row.at("ranks").to_number<int>(), " ranks")];
    ++seen[std::string(name_of(config.dtype))];
    ++seen[concat(config.accumulation_steps, " micro-steps")];
  }
  EXPECT_EQ(rows().size(), 53U);
  for (const char* what : {"stage 1", "stage 2", "2 ranks", "3 ranks", "4 ranks", "fp32", "fp16",
                           "bf16", "1 micro-steps", "2 micro-steps", "3 micro-steps"}) {
    EXPECT_GT(seen[what], 2) << what;
  }
}

}  // namespace
}  // namespace dstune::offload_of_deepspeed_test
