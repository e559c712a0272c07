#include "core/device/drive/aio_settings.hpp"

#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::aio_settings_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;

TEST(AioSettingsTest, DefaultsAreThoseOfDeepSpeed) {
  EXPECT_EQ(to_json_text(to_json(AioSettings{}), 0),
            R"({"block_size":1048576,"queue_depth":8,"intra_op_parallelism":1,)"
            R"("single_submit":false,"overlap_events":true})");
}

TEST(AioSettingsTest, AQueueThatTakesAWholePartIsAsGoodAsADeeperOne) {
  const AioSettings deep{.queue_depth = 128, .intra_op_parallelism = 2, .overlap_events = false};
  AioSettings shallow = deep;
  shallow.queue_depth = 32;

  EXPECT_EQ(as_operation_sees(deep, 64 * kMiB), as_operation_sees(shallow, 64 * kMiB));
  EXPECT_NE(as_operation_sees(deep, 65 * kMiB), as_operation_sees(shallow, 65 * kMiB));
}

TEST(AioSettingsTest, BatchesDifferOnlyWhereThereAreSeveral) {
  const AioSettings overlapped{.queue_depth = 32};
  AioSettings batched = overlapped;
  batched.overlap_events = false;

  EXPECT_EQ(as_operation_sees(overlapped, 32 * kMiB), as_operation_sees(batched, 32 * kMiB));
  EXPECT_NE(as_operation_sees(overlapped, 33 * kMiB), as_operation_sees(batched, 33 * kMiB));
}

}  // namespace
}  // namespace dstune::aio_settings_test
