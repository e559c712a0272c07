#include "core/train/step_config.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"

namespace dstune {
namespace {

StepConfig read(const char* text) { return make_step_config(parse_json(text).as_object()); }

TEST(StepConfig, HasDeepSpeedsDefaults) {
  const StepConfig config = read("{}");

  EXPECT_EQ(config.stage, 0);
  EXPECT_EQ(config.dtype, DType::fp32);
  EXPECT_EQ(config.gradient_clipping, 1);
  EXPECT_EQ(config.reduce_bucket_size, 500'000'000);
  EXPECT_EQ(config.sub_group_size, 1'000'000'000);
  EXPECT_EQ(config.loss_scale.hysteresis, 2);
  EXPECT_TRUE(config.reduce_scatter);
  EXPECT_TRUE(config.optimizer.client);
  EXPECT_TRUE(config.unsupported.empty());
}

TEST(StepConfig, OverlapsByDefaultInStage3Alone) {
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 2}})").overlap_comm);
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 3}})").overlap_comm);
}

TEST(StepConfig, NamesWhatIsNotModelled) {
  using Names = std::vector<std::string>;

  EXPECT_EQ(read(R"({"gradient_predivide_factor": 2})").unsupported,
            Names{"gradient_predivide_factor"});
  EXPECT_EQ(read(R"({"prescale_gradients": true, "zero_optimization": {"stage": 2}})").unsupported,
            Names{"prescale_gradients"});
  EXPECT_EQ(
      read(R"({"zero_optimization": {"stage": 1, "contiguous_gradients": false}})").unsupported,
      Names{"zero_optimization.contiguous_gradients"});
}

TEST(StepConfig, RejectsWrongTypes) {
  EXPECT_THROW(read(R"({"gradient_clipping": "1"})"), std::invalid_argument);
}

}  // namespace
}  // namespace dstune
