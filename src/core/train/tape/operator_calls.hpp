// How many ATen operators eager PyTorch calls for one of this program's operations.
#pragma once

#include "core/device/operations/list.hpp"

namespace dstune {

/// The operators, views included, that transformers' code calls where `Operation` runs, and
/// autograd in the place of one that runs in backward (`...Backward`, and whatever runs in both);
/// the `detach` is in it by which a parameter takes its gradient over. As the dispatcher sees them
/// below autograd (torch.utils._python_dispatch.TorchDispatchMode), PyTorch 2.15,
/// transformers 5.24. What casts 16 bits have more is counted where the operation is run.
template <class Operation>
inline constexpr int kOperatorCalls = 1;

// What this program does beside an operation, or what an operator of PyTorch's contains.
template <>
inline constexpr int kOperatorCalls<FillZero> = 0;
template <>
inline constexpr int kOperatorCalls<FillConstant> = 0;
template <>
inline constexpr int kOperatorCalls<FillTokens> = 0;
template <>
inline constexpr int kOperatorCalls<AddBias> = 0;  // addmm
template <>
inline constexpr int kOperatorCalls<NextTokens> = 0;

template <>
inline constexpr int kOperatorCalls<Unfold> = 2;
template <>
inline constexpr int kOperatorCalls<Fold> = 2;

inline constexpr int kDropoutCallsOnCpus =
    4;  ///< empty_like, bernoulli_, div_, mul; else one kernel

// torch.nn.functional.linear of three dimensions: t, view, mm, _unsafe_view. On the way back view,
// t, mm, view by the input; by the weight kWeightGradientCalls.
template <>
inline constexpr int kOperatorCalls<Gemm> = 4;
inline constexpr int kWeightGradientCalls = 5;  ///< t, mm, t, t, detach
inline constexpr int kMatrixCalls =
    2;  ///< linear of two dimensions, and of its way back by the input
inline constexpr int kConv1dCalls = 3;  ///< view, addmm, view: transformers' Conv1D
inline constexpr int kConv1dWeightGradientCalls = 3;
inline constexpr int kMatmulCalls = 7;  ///< of four dimensions: transpose, expand and view of both
inline constexpr int kMatmulBackwardCalls = 4;  ///< for one of its operands
template <>
inline constexpr int kOperatorCalls<BiasGradient> = 3;  // sum, view, detach

template <>
inline constexpr int kOperatorCalls<RmsNorm> = 6;  // pow, mean, add, rsqrt, mul, mul
template <>
inline constexpr int kOperatorCalls<RmsNormBackward> = 13;
inline constexpr int kRmsNormWeightCalls = 4;  ///< mul, sum, view, detach: where it is trained
inline constexpr int kRmsNormCasts = 2;        ///< in 16 bits, forward and backward

template <>
inline constexpr int kOperatorCalls<GeluNew> = 8;
template <>
inline constexpr int kOperatorCalls<GeluNewBackward> = 11;
template <>
inline constexpr int kOperatorCalls<Rotate> = 8;  // of q or of k; one more on the way back
inline constexpr int kRotaryTableCalls = 11;      ///< LlamaRotaryEmbedding.forward

// scaled_dot_product_attention with the views that make heads of rows, and rows of heads.
template <>
inline constexpr int kOperatorCalls<Attention> = 10;
template <>
inline constexpr int kOperatorCalls<AttentionBackward> = 10;
// With a bias that is trained, as it is on a CPU: products, a softmax and their views.
inline constexpr int kBiasedAttentionCalls = 22;
inline constexpr int kBiasedAttentionBackwardCalls = 17;
template <>
inline constexpr int kOperatorCalls<StackHeads> = 4;  // repeat_kv: unsqueeze, expand, clone, view
inline constexpr int kRepeatBackwardCalls = 8;  ///< of k and v: sum, squeeze, clone, view of both
template <>
inline constexpr int kOperatorCalls<SpreadHeads> = 4;
template <>
inline constexpr int kOperatorCalls<FillMask> = 3;  // of a mask of booleans, in each layer

template <>
inline constexpr int kOperatorCalls<EmbeddingBackward> = 2;
template <>
inline constexpr int kOperatorCalls<FillPositions> = 2;
// The labels are moved on, rows and labels are looked at as a matrix and a vector.
template <>
inline constexpr int kOperatorCalls<NllLoss> = 6;
template <>
inline constexpr int kOperatorCalls<NllLossBackward> = 3;

template <>
inline constexpr int kOperatorCalls<DivideBySum> = 2;
template <>
inline constexpr int kOperatorCalls<DivideBySumBackward> = 5;
template <>
inline constexpr int kOperatorCalls<SortByExpert> = 10;
template <>
inline constexpr int kOperatorCalls<TopKBackward> = 3;
template <>
inline constexpr int kOperatorCalls<GroupedGemm> = 3;
template <>
inline constexpr int kOperatorCalls<GroupedGemmByRows> = 5;
template <>
inline constexpr int kOperatorCalls<Glu> = 3;
template <>
inline constexpr int kOperatorCalls<GluBackward> = 4;
template <>
inline constexpr int kOperatorCalls<ScaleRows> = 2;
template <>
inline constexpr int kOperatorCalls<RowDots> = 2;
template <>
inline constexpr int kOperatorCalls<BalanceLoss> = 10;
template <>
inline constexpr int kOperatorCalls<BalanceLossBackward> = 10;

}  // namespace dstune
