// Which kernel PyTorch would compute attention with, and which stands in for it here.
#pragma once

#include <string>

#include "core/device/dtype.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

enum class AttentionKernel {
  cudnn,
  flash,         ///< FlashAttention-2, which is here never
  efficient,     ///< PyTorch's memory-efficient kernel, which is here never
  tensor_tiles,  ///< of our own, on tensor cores
  tiles,         ///< of our own, without them
  plain,         ///< of our own, without tiles
};

/// What scaled_dot_product_attention of PyTorch 2.11 takes: the first that can do it of cuDNN's (on
/// compute capability 9 and 10 alone), FlashAttention-2 and the memory-efficient one; windows are a
/// mask there, which the second cannot do (priority_order() and check_*() in
/// ATen/native/transformers/cuda/sdp_utils.cpp).
/// @param compute_capability  90 for 9.0
AttentionKernel pytorch_attention(int compute_capability, const AttentionShape& shape, DType dtype);

/// What a step's time is to be taken with, as a sentence; empty where `ours` is PyTorch's own
/// kernel, or nothing is known of the difference.
std::string about_stand_in(AttentionKernel theirs, AttentionKernel ours);

/// Enters that in a step's ledger. Cheap: each sentence is made once in a process.
void note_stand_in(Ledger& ledger, AttentionKernel theirs, AttentionKernel ours);

}  // namespace dstune::cuda
