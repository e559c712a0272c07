#include "core/train/families/families.hpp"

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace dstune::families_test {
namespace {

TEST(Families, AreFoundByTheirModelType) {
  ASSERT_NE(find_family("gpt2"), nullptr);
  EXPECT_EQ(find_family("gpt2")->model_type, "gpt2");
  EXPECT_EQ(find_family("gpt3"), nullptr);
}

TEST(Families, AnUnknownOneIsAnError) {
  ModelSpec spec;
  spec.family = "gpt3";

  EXPECT_THROW(make_model_parameters(spec), std::invalid_argument);
}

TEST(Families, NamesOfPresetsAreDistinct) {
  std::set<std::string> names;
  for (const Family& family : families()) {
    for (const ModelSpec& spec : family.presets()) EXPECT_TRUE(names.insert(spec.name).second);
  }
  EXPECT_EQ(names.count("gpt2-xl"), 1U);
}

}  // namespace
}  // namespace dstune::families_test
