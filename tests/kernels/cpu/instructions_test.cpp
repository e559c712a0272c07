#include "kernels/cpu/instructions.hpp"

#include <gtest/gtest.h>

namespace dstune::instructions_test {
namespace {

using cpu::InstructionNeed;

TEST(Instructions, ThatAreCompiledInAndNotHereAreNamed) {
  const InstructionNeed needs[] = {{"AVX2", true, true},
                                   {"AVX-512F", true, false},
                                   {"AVX-512 VNNI", false, false},
                                   {"AVX-512 BF16", true, false}};

  EXPECT_EQ(cpu::lacking(needs), "AVX-512F, AVX-512 BF16");
}

TEST(Instructions, OfThisBuildAreAllHere) { EXPECT_EQ(cpu::lacking_instructions(), ""); }

TEST(Instructions, AreLimitedByTheVariableThatLimitsPyTorchs) {
  EXPECT_TRUE(cpu::uses_avx512(nullptr, true));
  EXPECT_TRUE(cpu::uses_avx512("avx512", true));
  EXPECT_FALSE(cpu::uses_avx512("avx2", true));
  EXPECT_FALSE(cpu::uses_avx512("default", true));
  EXPECT_FALSE(cpu::uses_avx512("avx512", false));
}

}  // namespace
}  // namespace dstune::instructions_test
