#include "kernels/cpu/products/product_libraries.hpp"

#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/products/onednn.hpp"

namespace dstune::product_libraries_test {
namespace {

TEST(ProductLibraries, AreNamedWithTheirVersions) {
  const std::string names = cpu::product_libraries();

  EXPECT_FALSE(names.empty());
  EXPECT_EQ(names, cpu::product_libraries());
  if (names.find("oneDNN") != std::string::npos) {
    EXPECT_NE(names.find(cpu::Onednn::version()), std::string::npos) << names;
  }
}

}  // namespace
}  // namespace dstune::product_libraries_test
