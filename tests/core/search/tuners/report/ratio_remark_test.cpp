#include "core/search/tuners/report/ratio_remark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::ratio_remark_test {
namespace {

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
}

}  // namespace
}  // namespace dstune::ratio_remark_test
