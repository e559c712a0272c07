#include "core/config/deepspeed/auto_values.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace dstune::auto_values_test {
namespace {

using Texts = std::vector<std::string>;

std::string resolve(const char* text, std::int64_t hidden_size = 768) {
  return to_json_text(resolve_auto(json::parse(text).as_object(), hidden_size), 0);
}

TEST(ResolveAuto, TakesZeroSizesFromTheHiddenSize) {
  const auto resolved = resolve(
      R"({"zero_optimization":{"reduce_bucket_size":"auto","stage3_prefetch_bucket_size":"auto",)"
      R"("stage3_param_persistence_threshold":"auto","sub_group_size":"auto"}})");

  EXPECT_EQ(resolved,
            R"({"zero_optimization":{"reduce_bucket_size":589824,)"
            R"("stage3_prefetch_bucket_size":530841,"stage3_param_persistence_threshold":7680,)"
            R"("sub_group_size":"auto"}})");
}

TEST(ResolveAuto, TakesTheRestFromTrainingArguments) {
  const auto resolved =
      resolve(R"({"gradient_clipping":"auto","optimizer":{"type":"AdamW","params":{"lr":"auto",)"
              R"("betas":"auto","eps":"auto","weight_decay":"auto"}}})");

  EXPECT_EQ(resolved,
            R"({"gradient_clipping":1.0,"optimizer":{"type":"AdamW","params":{"lr":5e-05,)"
            R"("betas":[0.9,0.999],"eps":1e-08,"weight_decay":0.0}}})");
}

TEST(ResolveAuto, LeavesGivenValuesAndWrongSectionsAlone) {
  const auto* const text =
      R"({"gradient_clipping":0.5,"zero_optimization":3,"optimizer":{"params":"auto"},"fp16":[]})";

  EXPECT_EQ(resolve(text), text);
}

TEST(ResolveAuto, IsNoPrecisionBesideTheOneThatIsSettled) {
  EXPECT_EQ(resolve(R"({"fp16":{"enabled":"auto"},"bf16":{"enabled":true}})"),
            R"({"fp16":{"enabled":false},"bf16":{"enabled":true}})");
}

TEST(FindAuto, PointsToEachOfThem) {
  const auto value = json::parse(R"({"a":{"b":["auto",1]},"auto":"auto","c":"automatic"})");

  EXPECT_EQ(find_auto(value), (Texts{"/a/b/0", "/auto"}));
}

}  // namespace
}  // namespace dstune::auto_values_test
