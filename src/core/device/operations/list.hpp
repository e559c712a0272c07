// The operations that every Device has, by name.
#pragma once

/// X(Operation) for each operation. A Device has a virtual function for each of them, which is
/// empty in a device without arithmetic. A new operation is its struct in a header beside this one,
/// its line here, and a kernel for each backend.
// A macro is used because a list of types could not declare a virtual function for each of them; so
// call sites compile only the operations that they use.
// clang-format off
#define DSTUNE_OPERATIONS(X) \
  X(FillZero)                \
  X(FillConstant)            \
  X(FillNormal)              \
  X(FillTokens)              \
  X(Copy)                    \
  X(Cast)                    \
  X(Scale)                   \
  X(ScaleTo)                 \
  X(ScaleBy)                 \
  X(Add)                     \
  X(AddBroadcast)            \
  X(AddBroadcastBackward)    \
  X(AddSquares)              \
  X(FindInfOrNan)            \
  X(ClipFactor)              \
  X(Quantize)                \
  X(Dequantize)              \
  X(SumQuantized)            \
  X(Gemm)                    \
  X(AddBias)                 \
  X(BiasGradient)            \
  X(LayerNorm)               \
  X(LayerNormBackward)       \
  X(RmsNorm)                 \
  X(RmsNormBackward)         \
  X(Activate)                \
  X(ActivateBackward)        \
  X(Multiply)                \
  X(Clamp)                   \
  X(ClampBackward)           \
  X(Rotate)                  \
  X(GeluNew)                 \
  X(GeluNewBackward)         \
  X(Attention)               \
  X(AttentionBackward)       \
  X(StackHeads)              \
  X(SpreadHeads)             \
  X(FillMask)                \
  X(AddMask)                 \
  X(FillMasked)              \
  X(FillDistances)           \
  X(ShiftDistances)          \
  X(GatherColumns)           \
  X(GatherColumnsBackward)   \
  X(AddTransposed)           \
  X(PositionBuckets)         \
  X(StackBias)               \
  X(AddScoreBias)            \
  X(ScoreBiasGradient)       \
  X(Softmax)                 \
  X(SoftmaxBackward)         \
  X(Dropout)                 \
  X(DropoutBackward)         \
  X(Unfold)                  \
  X(Fold)                    \
  X(FillPositions)           \
  X(Embedding)               \
  X(EmbeddingBackward)       \
  X(LogSoftmax)              \
  X(LogSoftmaxBackward)      \
  X(NextTokens)              \
  X(MaskTokens)              \
  X(ShiftTokens)             \
  X(CrossEntropy)            \
  X(FoldLogits)              \
  X(LogSums)                 \
  X(LogitsGradient)          \
  X(CopyRows)                \
  X(Argmax)                  \
  X(Entropy)                 \
  X(AddSum)                  \
  X(NllLoss)                 \
  X(NllLossBackward)         \
  X(TopK)                    \
  X(TopKBackward)            \
  X(DivideBySum)             \
  X(DivideBySumBackward)     \
  X(SortByExpert)            \
  X(GroupedGemm)             \
  X(GroupedGemmByRows)       \
  X(Glu)                     \
  X(GluBackward)             \
  X(ScaleRows)               \
  X(RowDots)                 \
  X(SumGroups)               \
  X(RepeatRows)              \
  X(AddRouting)              \
  X(BalanceLoss)             \
  X(BalanceLossBackward)     \
  X(Adam)                    \
  X(Sgd)                     \
  X(Lion)                    \
  X(Adagrad)                 \
  X(Lamb)

/// X(Operation) for each operation that the host's cores have as well (Device::run_on_host).
#define DSTUNE_HOST_OPERATIONS(X) \
  X(FillZero)                     \
  X(FillConstant)                 \
  X(Copy)                         \
  X(Cast)                         \
  X(Scale)                        \
  X(FindInfOrNan)                 \
  X(Adam)                         \
  X(Lion)                         \
  X(Adagrad)
// clang-format on

namespace dstune {

#define DSTUNE_DECLARE(Operation) struct Operation;
DSTUNE_OPERATIONS(DSTUNE_DECLARE)
#undef DSTUNE_DECLARE

}  // namespace dstune
