#include <gtest/gtest.h>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::layers_test {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kCols = 10;
constexpr Matrix kHidden{nullptr, kRows, kCols, DType::bf16, kCols};  // 120 bytes
constexpr Tensor kWeight{nullptr, kCols, DType::bf16};                // 20 bytes
constexpr Tensor kOfRows{nullptr, kRows, DType::fp32};                // 24 bytes
constexpr Tensor kAll{nullptr, kRows* kCols, DType::bf16};            // 120 bytes
constexpr Tensor kTokens{nullptr, kRows, DType::int64};               // 48 bytes

void expect_moves(const Work& work, Bytes read, Bytes written) {
  EXPECT_EQ(work.read_bytes(), read) << work.operation;
  EXPECT_EQ(work.written_bytes(), written) << work.operation;
}

TEST(WorkOfLayers, LayerNormMovesItsStatisticsToo) {
  expect_moves(work_of(LayerNorm{.x = kHidden,
                                 .gamma = kWeight,
                                 .beta = kWeight,
                                 .saved = {kOfRows, kOfRows},
                                 .out = kHidden}),
               120 + Bytes{2} * 20, 2 * 24 + 120);
  expect_moves(work_of(LayerNormBackward{.d_out = kHidden,
                                         .x = kHidden,
                                         .gamma = kWeight,
                                         .saved = {kOfRows, kOfRows},
                                         .d_x = kHidden,
                                         .d_gamma = kWeight,
                                         .d_beta = kWeight}),
               2 * 120 + 20 + 2 * 24, 120 + Bytes{2} * 20);
}

TEST(WorkOfLayers, GeluWritesWhatItSaves) {
  const GeluSaved saved{kAll, kAll, kAll};

  expect_moves(work_of(GeluNew{kAll, saved, kAll}), 120, Bytes{4} * 120);
  expect_moves(work_of(GeluNewBackward{kAll, kAll, saved, kAll}), Bytes{5} * 120, 120);
}

TEST(WorkOfLayers, AttentionIsHalfOfItsSquareAndTwoAndAHalfTimesThatBackward) {
  const AttentionShape shape{.batch = 2, .sequence = 3, .heads = 5, .kv_heads = 5, .head_size = 2};
  const Heads part{{nullptr, kRows, kCols, DType::bf16, 3 * kCols}, 2};
  const Tensor lse{nullptr, std::int64_t{2} * 5 * 3, DType::fp32};

  const Work forward = work_of(Attention{.shape = shape,
                                         .q = part,
                                         .k = part,
                                         .v = part,
                                         .lse = lse,
                                         .workspace = {},
                                         .out = kHidden});
  const Work backward = work_of(AttentionBackward{.shape = shape,
                                                  .d_out = kHidden,
                                                  .q = part,
                                                  .k = part,
                                                  .v = part,
                                                  .out = kHidden,
                                                  .lse = lse,
                                                  .workspace = {},
                                                  .d_q = part,
                                                  .d_k = part,
                                                  .d_v = part});

  EXPECT_EQ(forward.flops, 2.0 * 2 * 5 * 3 * 3 * 2);
  EXPECT_EQ(backward.flops, 2.5 * forward.flops);
  expect_moves(forward, 360, 120 + 120);
  expect_moves(backward, 120 + 360 + 120 + 120, 360);
}

TEST(WorkOfLayers, AttentionCountsWhatQueriesSeeAndHeadsThatShareAKeyOnce) {
  AttentionShape shape{.batch = 2, .sequence = 3, .heads = 5, .kv_heads = 1, .head_size = 2};
  const Heads q{{nullptr, kRows, kCols, DType::bf16, kCols}, 2};
  const Heads k{{nullptr, kRows, 2, DType::bf16, 2}, 2};
  const Attention grouped{
      .shape = shape, .q = q, .k = k, .v = k, .lse = {}, .workspace = {}, .out = kHidden};
  expect_moves(work_of(grouped), 120 + Bytes{2} * 24, 120);

  shape.causal = false;
  EXPECT_EQ(attention_flops(shape), 4.0 * 2 * 5 * 3 * 3 * 2);
  shape.window = 2;
  EXPECT_EQ(attention_flops(shape), 4.0 * 2 * 5 * (2 * 3 * 2 - 2 * 2) * 2);
  shape.causal = true;
  EXPECT_EQ(attention_flops(shape), 4.0 * 2 * 5 * (3 * 2 - 2) * 2);
}

TEST(WorkOfLayers, DropoutMovesAByteOfMaskPerElement) {
  const Tensor mask{nullptr, kRows * kCols, DType::int8};

  expect_moves(work_of(Dropout{.in = kAll, .mask = mask, .out = kAll}), 120, 60 + 120);
  expect_moves(work_of(DropoutBackward{.d_out = kAll, .mask = mask, .d_in = kAll}), 120 + 60, 120);
}

TEST(WorkOfLayers, EmbeddingMovesOnlyTheRowsItLooksUp) {
  const Matrix table{nullptr, 1000, kCols, DType::bf16, kCols};

  expect_moves(work_of(FillPositions{kTokens}), 0, 48);
  expect_moves(work_of(Embedding{kTokens, table, kHidden}), 48 + 120, 120);
  expect_moves(work_of(EmbeddingBackward{kHidden, kTokens, table}), 48 + Bytes{2} * 120, 120);
}

TEST(WorkOfLayers, WhatIsAddedToEverySequenceIsReadOnce) {
  const Matrix positions{nullptr, 3, kCols, DType::bf16, kCols};  // 60 bytes

  expect_moves(work_of(AddBroadcast{kHidden, positions, kHidden}), 120 + 60, 120);
  expect_moves(work_of(AddBroadcastBackward{kHidden, positions}), 120, 60);
}

TEST(WorkOfLoss, ReadsOneElementPerRowAndWritesAllBackward) {
  const Matrix log_probs{nullptr, kRows, 100, DType::fp32, 100};  // 2400 bytes
  const Tensor loss{nullptr, 1, DType::fp32};

  expect_moves(work_of(LogSoftmax{log_probs, log_probs}), 2400, 2400);
  expect_moves(work_of(NextTokens{kTokens, 3, kTokens}), 48, 48);
  expect_moves(work_of(NllLoss{log_probs, kTokens, loss}), 24 + 48, 0);
  expect_moves(work_of(NllLossBackward{.labels = kTokens, .out = log_probs}), 48, 2400);
  expect_moves(work_of(LogSoftmaxBackward{log_probs, log_probs, log_probs}), 4800, 2400);
}

TEST(WorkOfLoss, OfPartsIsThatOfTheKernelsOfTrlAndLiger) {
  const Matrix tile{nullptr, kRows, 100, DType::bf16, 200};                  // 1200 bytes
  const Matrix statistics{nullptr, kRowStatistics, kRows, DType::fp32, 50};  // 72 bytes
  const Matrix log_probs{nullptr, kRows, 100, DType::fp32, 100};             // 2400 bytes
  const Tensor loss{nullptr, 1, DType::fp32};

  expect_moves(work_of(CrossEntropy{tile, kTokens, kOfRows}), 2 * 1200 + 48, 1200 + 24);
  expect_moves(work_of(FoldLogits{tile, kTokens, 0, statistics}), 1200 + 48 + 72, 72);
  expect_moves(work_of(LogSums{statistics, kOfRows, kOfRows}), 72, 48);
  expect_moves(work_of(LogitsGradient{tile, kTokens, 0, kOfRows, 1}), 1200 + 48 + 24, 1200);
  expect_moves(work_of(Argmax{log_probs, kTokens}), 2400, 48);
  expect_moves(work_of(Entropy{log_probs, log_probs, log_probs, kOfRows}), Bytes{4} * 2400,
               Bytes{2} * 2400 + 24);
  expect_moves(work_of(CopyRows{tile, tile}), 1200, 1200);
  expect_moves(work_of(AddSum{kOfRows, 1, loss}), 24, 0);
}

}  // namespace
}  // namespace dstune::layers_test
