#include "core/search/tuners/report/offload_remarks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::offload_remarks_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string remark_of(const json::object& offload, std::int64_t sub_group_size = 200) {
  test::TinyExperiment tiny{3, 2, 1, 1, DType::bf16, false};
  tiny.zero["offload_optimizer"] = offload;
  tiny.zero["sub_group_size"] = sub_group_size;
  return ratio_remark(tiny.make());
}

TEST(RatioRemark, SaysWhatARatioBelowOneComesTo) {
  EXPECT_EQ(remark_of({{"device", "cpu"}}), "");
  EXPECT_EQ(remark_of({{"device", "cpu"}, {"ratio", 1.0}}), "");
  EXPECT_EQ(remark_of({{"device", "none"}, {"ratio", 0.5}}), "");
  EXPECT_EQ(remark_of({{"device", "cpu"}, {"ratio", 0.0}}),
            "offload_optimizer.ratio 0.0 leaves 3 of a rank's 3 sub-groups on the device");
}

TEST(RatioRemark, NamesTheWayOutWhereItIsRounded) {
  EXPECT_EQ(remark_of({{"device", "cpu"}, {"ratio", 0.5}}, 1'000'000),
            "offload_optimizer.ratio 0.5 leaves 0 of a rank's 1 sub-group on the device, since "
            "DeepSpeed rounds down; a smaller sub_group_size (1000000 now, of 456 parameters that "
            "a rank steps) gets nearer to it");
  EXPECT_THAT(remark_of({{"device", "cpu"}, {"ratio", 0.4}}),
              HasSubstr("leaves 1 of a rank's 3 sub-groups on the device, since DeepSpeed rounds"));
  EXPECT_EQ(remark_of({{"device", "cpu"}, {"ratio", 1.0 / 3}}),
            "offload_optimizer.ratio 0.3333333333333333 leaves 2 of a rank's 3 sub-groups on the "
            "device");
}

Record best_of(DType dtype, std::int64_t accumulation) {
  test::TinyExperiment tiny{2, 2, 1, accumulation, dtype, false};
  tiny.zero["offload_optimizer"] = {{"device", "cpu"}};
  Record best;
  best.experiment = tiny.make();
  best.experiment.settings.host_memory_limit = kNoLimit;
  best.outcome = dry_run(best.experiment, 0).outcome;
  return best;
}

// Of 910 parameters on two ranks, in each of three micro-steps down, and in two of them up.
TEST(SumsRemark, SaysHowMuchFp32SumsWouldSaveAndWhatTheyTake) {
  EXPECT_THAT(sums_remark(best_of(DType::bf16, 3)),
              AllOf(HasSubstr("of a step's copies are sums of its micro-steps"),
                    HasSubstr("where they take 1.78 KiB"), HasSubstr("check_grad_overflow false")));
  EXPECT_EQ(sums_remark(best_of(DType::bf16, 1)), "");
  EXPECT_EQ(sums_remark(best_of(DType::fp16, 3)), "");
  EXPECT_EQ(sums_remark(best_of(DType::fp32, 3)), "");
}

// 1 GiB in 2 s of each of 8 ranks, of which a node has 4: 2 GiB/s, which are 7.73 TB an hour.
TEST(DriveRemark, SaysHowLongADriveLasts) {
  Record best = best_of(DType::bf16, 1);
  best.experiment.ranks = 8;
  best.experiment.settings.devices_per_node = 4;
  auto& measured = std::get<Measured>(best.outcome);
  EXPECT_EQ(drive_remark(best), "");

  measured.step_time.median = 2;
  measured.ledger.add_transfer({Transfer::nvme_write, TransferPurpose::state, Tier::nvme, false,
                                Stream::compute, 0, Bytes{1} << 30U});
  measured.ledger.add_transfer({Transfer::nvme_read, TransferPurpose::state, Tier::nvme, false,
                                Stream::compute, 0, Bytes{3} << 30U});

  EXPECT_EQ(drive_remark(best),
            "each step writes 1.00 GiB per rank to the drive, at this speed 7.73 TB an hour for "
            "the 4 ranks of a node: 3.2 days for a drive rated for 600 TB of writes");
}

}  // namespace
}  // namespace dstune::offload_remarks_test
