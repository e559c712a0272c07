#include "kernels/cuda/attention/stand_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::cuda::stand_in_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AttentionShape heads_of(std::int64_t columns, std::int64_t window = 0) {
  return {.batch = 1,
          .sequence = 64,
          .heads = 2,
          .kv_heads = 2,
          .head_size = columns,
          .window = window};
}

TEST(StandIn, OfPytorchIsCudnnsOnHopperAndBlackwellOfDataCenters) {
  for (const int capability : {90, 100, 103}) {
    EXPECT_EQ(pytorch_attention(capability, heads_of(64), DType::bf16), AttentionKernel::cudnn);
    EXPECT_EQ(pytorch_attention(capability, heads_of(256), DType::fp16), AttentionKernel::cudnn);
    EXPECT_EQ(pytorch_attention(capability, heads_of(64, 8), DType::bf16), AttentionKernel::cudnn);
  }
}

TEST(StandIn, OfPytorchIsFlashAttentionOnOthersWithoutAMask) {
  for (const int capability : {80, 86, 89, 120}) {
    EXPECT_EQ(pytorch_attention(capability, heads_of(64), DType::bf16), AttentionKernel::flash);
    EXPECT_EQ(pytorch_attention(capability, heads_of(64, 64), DType::bf16), AttentionKernel::flash);
    EXPECT_EQ(pytorch_attention(capability, heads_of(64, 8), DType::bf16),
              AttentionKernel::efficient);
  }
  EXPECT_EQ(pytorch_attention(90, heads_of(100), DType::bf16), AttentionKernel::flash);
}

TEST(StandIn, OfPytorchIsTheMemoryEfficientKernelForWhatTheOthersCannot) {
  EXPECT_EQ(pytorch_attention(90, heads_of(64), DType::fp32), AttentionKernel::efficient);
  EXPECT_EQ(pytorch_attention(90, heads_of(264), DType::bf16), AttentionKernel::efficient);
  EXPECT_EQ(pytorch_attention(75, heads_of(64), DType::fp16), AttentionKernel::efficient);
  EXPECT_EQ(pytorch_attention(89, heads_of(200), DType::bf16), AttentionKernel::efficient);
  EXPECT_EQ(pytorch_attention(80, heads_of(200), DType::bf16), AttentionKernel::flash);
  AttentionShape dropping = heads_of(256);
  EXPECT_EQ(pytorch_attention(120, dropping, DType::bf16), AttentionKernel::flash);
  dropping.dropout = 0.1;
  EXPECT_EQ(pytorch_attention(120, dropping, DType::bf16), AttentionKernel::efficient);
}

TEST(StandIn, IsSaidWithWhatItCosts) {
  EXPECT_THAT(about_stand_in(AttentionKernel::cudnn, AttentionKernel::cudnn), IsEmpty());
  EXPECT_THAT(about_stand_in(AttentionKernel::flash, AttentionKernel::cudnn),
              AllOf(HasSubstr("FlashAttention-2"), HasSubstr("1.2 to 1.3 times in backward")));
  EXPECT_THAT(about_stand_in(AttentionKernel::cudnn, AttentionKernel::plain),
              AllOf(HasSubstr("cuDNN"), HasSubstr("plain"), HasSubstr("many times")));
  EXPECT_THAT(about_stand_in(AttentionKernel::efficient, AttentionKernel::cudnn),
              HasSubstr("nothing is known"));
}

TEST(StandIn, IsEnteredOnceInALedger) {
  Ledger ledger;
  note_stand_in(ledger, AttentionKernel::cudnn, AttentionKernel::cudnn);
  EXPECT_THAT(ledger.stand_ins(), IsEmpty());
  for (int call = 0; call < 3; ++call) {
    note_stand_in(ledger, AttentionKernel::flash, AttentionKernel::cudnn);
  }
  EXPECT_THAT(ledger.stand_ins(), ElementsAre(HasSubstr("FlashAttention-2")));
}

}  // namespace
}  // namespace dstune::cuda::stand_in_test
