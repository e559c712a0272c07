#include "kernels/cpu/products/choose_products.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "kernels/cpu/products/onednn.hpp"

namespace dstune::cpu::choose_products_test {

namespace {

using ::testing::HasSubstr;

class ReadProductChoice : public ::testing::Test {
 protected:
  ReadProductChoice() {
    if (const char* text = std::getenv(kVariable)) before_ = text;
  }
  ~ReadProductChoice() override { set(before_); }

  static void set(const std::optional<std::string>& text) {
    if (text) {
      setenv(kVariable, text->c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
  }
  static std::string refusal() {
    try {
      read_product_choice();
    } catch (const ConfigError& fault) {
      return fault.what();
    }
    return "";
  }

 private:
  static constexpr const char* kVariable = "DSTUNE_CPU_PRODUCTS";
  std::optional<std::string> before_;
};

TEST_F(ReadProductChoice, IsMeasuredUnlessTheUserSays) {
  set(std::nullopt);
  EXPECT_EQ(read_product_choice(), ProductChoice::automatic);
  set("auto");
  EXPECT_EQ(read_product_choice(), ProductChoice::automatic);
  set("blas");
  EXPECT_EQ(read_product_choice(), ProductChoice::blas);
}

TEST_F(ReadProductChoice, AnotherWordIsRefusedWithTheAcceptedOnes) {
  set("mkl");

  EXPECT_THAT(refusal(), HasSubstr("DSTUNE_CPU_PRODUCTS  is \"mkl\"; accepted: blas, "));
}

TEST_F(ReadProductChoice, OnednnIsRefusedByABuildWithoutIt) {
  set("onednn");

  if (Onednn::is_there()) {
    EXPECT_EQ(read_product_choice(), ProductChoice::onednn);
  } else {
    EXPECT_THAT(refusal(),
                HasSubstr("is \"onednn\", which this build lacks; accepted: blas, auto"));
  }
}

TEST(ChooseProducts, TheBlasHasAllIfItIsChosen) {
  EXPECT_EQ(choose_products(ProductChoice::blas, 1), OnednnTypes{});
}

TEST(ChooseProducts, OnednnHasAllThatItCanIfItIsChosen) {
  const OnednnTypes types = choose_products(ProductChoice::onednn, 1);

  EXPECT_EQ(types.fp32, Onednn::is_there());
  EXPECT_EQ(types.bf16, Onednn::multiplies_bf16());
}

TEST(ChooseProducts, NothingIsMeasuredToBeFasterThatIsNotThere) {
  const OnednnTypes types = choose_products(ProductChoice::automatic, 1);

  EXPECT_TRUE(Onednn::is_there() || types == OnednnTypes{});
  EXPECT_TRUE(Onednn::multiplies_bf16() || !types.bf16);
}

// torch's own library is slow there, so that the faster one would be the wrong one.
TEST(ChooseProducts, OnAmdTheBlasHasFp32UnlessTheUserSays) {
  const OnednnTypes chosen = choose_products(ProductChoice::automatic, 1, ProcessorMaker::amd);
  const OnednnTypes asked = choose_products(ProductChoice::onednn, 1, ProcessorMaker::amd);

  EXPECT_FALSE(chosen.fp32);
  EXPECT_EQ(asked.fp32, Onednn::is_there());
}

TEST(Fp32Caveat, IsOfAmdAlone) {
  EXPECT_EQ(fp32_caveat(ProductChoice::automatic, ProcessorMaker::other), "");
  EXPECT_THAT(fp32_caveat(ProductChoice::automatic, ProcessorMaker::amd), HasSubstr("1.15"));
  EXPECT_THAT(fp32_caveat(ProductChoice::onednn, ProcessorMaker::amd), HasSubstr("1.13 to 2.3"));
}

}  // namespace

}  // namespace dstune::cpu::choose_products_test
