#include "kernels/cuda/base/compiled_for.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::cuda::compiled_for_test {
namespace {

using testing::EndsWith;

TEST(CapabilitiesText, IsThatOfPyTorch) {
  EXPECT_EQ(capabilities_text("75-real 80-real 120"), "7.5, 8.0, 12.0+PTX");
  EXPECT_EQ(capabilities_text("90a-real 100f 90-virtual"), "9.0a, 10.0f+PTX, 9.0 as PTX");
  EXPECT_EQ(capabilities_text("native"), "native");
}

TEST(CodeFor, ServesItsMajorVersionFromItsMinorOneOn) {
  EXPECT_TRUE(have_code_for("75-real 80-real", {8, 0}));
  EXPECT_TRUE(have_code_for("75-real 80-real", {8, 9}));
  EXPECT_FALSE(have_code_for("75-real 86-real", {8, 0}));
  EXPECT_FALSE(have_code_for("75-real 80-real", {9, 0}));
  EXPECT_FALSE(have_code_for("75-real 80-real", {7, 0}));
}

TEST(CodeFor, AsPtxServesAllThatIsNewer) {
  EXPECT_TRUE(have_code_for("75-real 80", {9, 0}));
  EXPECT_TRUE(have_code_for("80-virtual", {12, 0}));
  EXPECT_FALSE(have_code_for("80-virtual", {7, 5}));
}

TEST(CodeFor, OfOneGpuOrOfAFamilyServesNoOther) {
  EXPECT_TRUE(have_code_for("90a", {9, 0}));
  EXPECT_FALSE(have_code_for("90a", {10, 0}));
  EXPECT_TRUE(have_code_for("100f", {10, 3}));
  EXPECT_FALSE(have_code_for("100f", {12, 0}));
}

TEST(CodeFor, IsTakenToBeThereWhereNobodySays) {
  EXPECT_TRUE(have_code_for("all", {7, 0}));
  EXPECT_TRUE(have_code_for("80-real OFF", {9, 0}));
}

TEST(LeastDriver, IsThatOfTheFirstMinorVersion) {
  EXPECT_EQ(least_driver(12080), 525);
  EXPECT_EQ(least_driver(13000), 580);
  EXPECT_EQ(needed_driver_text(13020), "needs driver 580 or newer");
  EXPECT_EQ(needed_driver_text(99000), "");
}

// A program of CUDA 12 may lack code for a V100, too.
TEST(LackOfCode, SaysWhatToBuild) {
  EXPECT_EQ(lack_of_code({12080, "80-real 90"}, "Tesla V100-SXM2-32GB", {7, 0}),
            "this program has no code for Tesla V100-SXM2-32GB, compute capability 7.0: CUDA 12.8 "
            "compiled it for 8.0, 9.0+PTX; build with CUDAARCHS=70 (scripts/build.sh) and a CUDA "
            "toolkit that knows it");
  EXPECT_THAT(lack_of_code({13000, "90"}, "NVIDIA A100", {8, 0}),
              EndsWith("; build with CUDAARCHS=80 (scripts/build.sh) and a CUDA toolkit that knows "
                       "it"));
  EXPECT_THAT(lack_of_code({13000, "75"}, "Tesla P100", {6, 0}),
              EndsWith("; nor can it be compiled for less than 7.0, the first with tensor cores"));
  EXPECT_THAT(lack_of_code({13000, "75"}, "Tesla V100", {7, 0}),
              EndsWith("CUDA 13 has dropped all before 7.5: build with a CUDA 12 toolkit (12.2 or "
                       "newer) and CUDAARCHS=70 (scripts/build.sh)"));
}

}  // namespace
}  // namespace dstune::cuda::compiled_for_test
