#include "core/device/backend_list.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace dstune::backend_list_test {
namespace {

TEST(BackendList, HasEachNameAmongTheChoicesAfterAuto) {
  std::string choices = "auto";
  for (const BackendTraits& backend : kBackends) choices += "|" + std::string(backend.name);

  EXPECT_EQ(kBackendChoices, choices);
}

TEST(BackendList, GivesEachItsOwnPlace) {
  std::set<int> places;
  for (const BackendTraits& backend : kBackends) places.insert(backend.place);

  EXPECT_EQ(places.size(), std::size(kBackends));
}

TEST(BackendList, TakesAnUnknownOneForAnAccelerator) {
  const BackendTraits traits = traits_of_backend("tpu");

  EXPECT_FALSE(traits.computes_on_host);
  EXPECT_TRUE(traits.rates.overlaps);
  EXPECT_EQ(traits.allocator, AllocatorModel::exact);
}

}  // namespace
}  // namespace dstune::backend_list_test
