// Collectives that begin late change nothing, unless somebody does not wait for them.
#include <exception>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::late_collectives_test {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 1;
constexpr int kMostUs = 500;
constexpr int kComputeStream = 0;
constexpr int kNone = -1;

class LateCollectives : public testing::TestWithParam<int> {
 protected:
  ~LateCollectives() override { cuda_on_host::delay_collectives(0); }

  static test::TrainingRun train(int delay_us, int deaf_stream) {
    cuda_on_host::set_up({.devices = kRanks, .bytes = Bytes{2} << 30U});
    cuda_on_host::delay_collectives(delay_us);
    cuda_on_host::deafen(deaf_stream);
    return test::run_training(
        test::config_of({.stage = GetParam(), .ranks = kRanks},
                        R"({"overlap_comm": true, "stage3_prefetch_bucket_size": 700,
                            "stage3_param_persistence_threshold": 12})"),
        kRanks, kSteps);
  }
};

INSTANTIATE_TEST_SUITE_P(Stages, LateCollectives, testing::Values(0, 2, 3));

TEST_P(LateCollectives, TrainAsThoseInTime) {
  const test::TrainingRun in_time = train(0, kNone);

  const std::uint64_t before = cuda_on_host::delayed_collectives();
  const test::TrainingRun late = train(kMostUs, kNone);
  EXPECT_GT(cuda_on_host::delayed_collectives(), before);

  EXPECT_EQ(late.losses, in_time.losses);
  EXPECT_EQ(late.norms, in_time.norms);
  EXPECT_EQ(late.parameters, in_time.parameters);
}

TEST_P(LateCollectives, ShowThatNobodyWaitsForThem) {
  const test::TrainingRun right = train(0, kNone);

  try {
    EXPECT_NE(train(kMostUs, kComputeStream).parameters, right.parameters);
  } catch (const std::exception&) {
    SUCCEED() << "what is not a number, or ranks that differ";
  }
}

}  // namespace
}  // namespace dstune::late_collectives_test
