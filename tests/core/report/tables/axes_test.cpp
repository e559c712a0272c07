#include "core/report/tables/axes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::axes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_experiment;

std::vector<ResultAxis> axes_of(const Experiment& a, const Experiment& b) {
  return varying_axes(std::vector<const Experiment*>{&a, &b});
}

std::vector<std::string> titles_of(const std::vector<ResultAxis>& axes) {
  std::vector<std::string> titles;
  for (const ResultAxis& axis : axes) titles.push_back(axis.title);
  return titles;
}

std::vector<std::string> columns_of(const std::vector<ResultAxis>& axes) {
  std::vector<std::string> names;
  for (const ResultAxis& axis : axes) names.push_back(column_name(axis));
  return names;
}

TEST(VaryingAxes, AreThoseOfTheStepFirst) {
  Experiment other = make_experiment(2, 4, 3);
  other.ds_config.set("gradient_clipping", 1.0);

  const auto axes = axes_of(make_experiment(1, 2), other);

  EXPECT_THAT(titles_of(axes),
              ElementsAre("zero", "micro batch", "accumulate", "gradient_clipping"));
  EXPECT_THAT(axis_values(axes, other), ElementsAre("2", "4", "3", "1.0"));
  EXPECT_EQ(axis_value(axes.back(), make_experiment(1, 2)), "");
  EXPECT_EQ(axis_json(axes.back(), make_experiment(1, 2)), nullptr);
  EXPECT_EQ(axis_json(axes.back(), other), 1.0);
}

TEST(VaryingAxes, NoneVaryOfOne) {
  EXPECT_THAT(axes_of(make_experiment(1, 2), make_experiment(1, 2)), IsEmpty());
}

TEST(VaryingAxes, ThePrecisionIsOneWhereverItIsSaid) {
  Experiment bf16 = make_experiment(1, 2);
  bf16.ds_config.set("bf16", {{"enabled", true}});
  bf16.ds_config.set("fp16", {{"enabled", false}});
  Experiment fp16 = make_experiment(1, 2);
  fp16.ds_config.set("bf16", {{"enabled", false}});
  fp16.ds_config.set("fp16", {{"enabled", true}});
  const Experiment fp32 = make_experiment(1, 2);

  const auto axes = axes_of(bf16, fp16);

  EXPECT_THAT(columns_of(axes), ElementsAre("precision"));
  EXPECT_EQ(axis_value(axes.front(), bf16), "bf16");
  EXPECT_EQ(axis_value(axes.front(), fp16), "fp16");
  EXPECT_EQ(axis_value(axes.front(), fp32), "fp32");
}

TEST(ColumnName, SaysWhichSectionOfDeepSpeedAndNotThatASettingIsOurs) {
  Experiment first = make_experiment(1, 2);
  Experiment second = make_experiment(1, 2);
  first.ds_config.set("dstune", {{"activation_checkpointing", false}, {"sequence_length", 128}});
  second.ds_config.set("dstune", {{"activation_checkpointing", true}, {"sequence_length", 256}});
  second.ds_config.set("zero_optimization", {{"stage", 1}, {"overlap_comm", true}});

  const auto axes = axes_of(first, second);

  EXPECT_THAT(columns_of(axes),
              testing::UnorderedElementsAre("zero_optimization.overlap_comm",
                                            "activation_checkpointing", "sequence_length"));
}

}  // namespace
}  // namespace dstune::axes_test
