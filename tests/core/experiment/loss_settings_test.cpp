#include "core/experiment/loss_settings.hpp"

#include <gtest/gtest.h>

namespace dstune::loss_settings_test {
namespace {

TEST(LossSettings, EveryKindIsFoundByItsName) {
  for (const LossKind kind :
       {LossKind::plain, LossKind::chunked, LossKind::tiled, LossKind::fused}) {
    EXPECT_EQ(loss_from(name_of(kind)), kind);
  }
  EXPECT_EQ(loss_from("cut"), std::nullopt);
}

TEST(LossSettings, AreDescribed) {
  EXPECT_EQ(describe(LossSettings{LossKind::tiled}), "tiled");
  EXPECT_EQ(describe(LossSettings{.keep_logits = true}), "plain, logits kept");
}

}  // namespace
}  // namespace dstune::loss_settings_test
