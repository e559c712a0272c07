#include "kernels/cuda/attention/stand_in.hpp"

#include <array>
#include <cstddef>
#include <string_view>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

constexpr std::string_view name_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::cudnn:
      return "cuDNN's kernel";
    case AttentionKernel::flash:
      return "FlashAttention-2";
    case AttentionKernel::efficient:
      return "its memory-efficient kernel";
    case AttentionKernel::tensor_tiles:
    case AttentionKernel::tiles:
      return "a tiled kernel of our own";
    case AttentionKernel::plain:
      return "a plain kernel of our own";
  }
  return "";
}

/// How much longer a stand-in takes.
struct Slowdown {
  AttentionKernel theirs;
  AttentionKernel ours;
  std::string_view text;
};

// efficient, tiles: 8 sequences of 1,024, 12 heads of 64, in fp32 on an H200
// (docs/measurements.md). flash, cudnn: forward and backward of causal attention over 2,048 to
// 32,768 tokens, heads of 128, on an A100 (benchmark/attention_training/results/llama3.1/a100 of
// NVIDIA/cudnn-frontend, 816ea457). cudnn, tensor_tiles: on the H200, docs/measurements.md.
constexpr std::array kSlowdowns = {
    Slowdown{AttentionKernel::flash, AttentionKernel::cudnn,
             "1.1 to 1.2 times as long in forward and 1.2 to 1.3 times in backward on an A100"},
    Slowdown{AttentionKernel::cudnn, AttentionKernel::tensor_tiles,
             "1.5 to 2.3 times as long on an H200"},
    Slowdown{AttentionKernel::efficient, AttentionKernel::tiles,
             "2 times as long in forward and 3.5 times in backward on an H200"},
};

/// Not for the largest heads on GPUs with little shared memory.
bool has_flash_backward(int compute_capability, const AttentionShape& shape) {
  const bool is_small =
      (compute_capability > 80 && compute_capability < 90) || compute_capability >= 120;
  return !is_small || shape.head_size <= 192 || (shape.head_size > 224 && shape.dropout == 0);
}

}  // namespace

AttentionKernel pytorch_attention(int compute_capability, const AttentionShape& shape,
                                  DType dtype) {
  constexpr std::int64_t kMostColumns = 256;  // of cuDNN's heads and of FlashAttention's
  const bool has_half = dtype == DType::fp16 || (dtype == DType::bf16 && compute_capability >= 80);
  if (!has_half || compute_capability < 80 || shape.head_size > kMostColumns) {
    return AttentionKernel::efficient;
  }
  const int major = compute_capability / 10;
  if ((major == 9 || major == 10) && shape.head_size % 8 == 0) return AttentionKernel::cudnn;
  const bool is_masked = shape.window > 0 && shape.window < shape.sequence;
  return is_masked || !has_flash_backward(compute_capability, shape) ? AttentionKernel::efficient
                                                                     : AttentionKernel::flash;
}

std::string about_stand_in(AttentionKernel theirs, AttentionKernel ours) {
  if (theirs == ours) return {};
  std::string_view slowdown = "another time, of which nothing is known";
  for (const Slowdown& known : kSlowdowns) {
    if (known.theirs == theirs && known.ours == ours) slowdown = known.text;
  }
  if (ours == AttentionKernel::plain) slowdown = "many times as long";
  return concat("attention: PyTorch would take ", name_of(theirs), " on this GPU; ", name_of(ours),
                " stands in for it and takes ", slowdown);
}

void note_stand_in(Ledger& ledger, AttentionKernel theirs, AttentionKernel ours) {
  constexpr std::size_t kKernels = 6;
  static_assert(static_cast<std::size_t>(AttentionKernel::plain) + 1 == kKernels);
  static const auto texts = [] {
    std::array<std::array<std::string, kKernels>, kKernels> all;
    for (std::size_t i = 0; i < kKernels; ++i) {
      for (std::size_t j = 0; j < kKernels; ++j) {
        all[i][j] =
            about_stand_in(static_cast<AttentionKernel>(i), static_cast<AttentionKernel>(j));
      }
    }
    return all;
  }();
  if (theirs == ours) return;
  ledger.note_stand_in(texts[static_cast<std::size_t>(theirs)][static_cast<std::size_t>(ours)]);
}

}  // namespace dstune::cuda
