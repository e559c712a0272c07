// Eager attention, and its parts: operations on stacks of heads and on stacks of scores.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/tape/tape.hpp"

namespace dstune::nn {

/// torch.bmm of stacks, c = op(a) op(b); it makes no node.
/// @param calls  the ATen operators that it stands for; 0: a kernel's own work
void multiply_into(const Tape& on, const Value& a, Transpose transpose_a, const Value& b,
                   Transpose transpose_b, const Value& c, int calls = 0);

/// torch.matmul() of stacks: a b or a b^T
Value multiply_stacks(Tape& on, const Value& a, const Value& b, Transpose transpose_b);

/// The rows (M, heads * head_size) as a stack of shape.heads matrices per sequence, each head as
/// often as it serves. The heads of a single sequence stay in the memory of `rows`, if each serves
/// once.
Value stack_heads(Tape& on, const AttentionShape& shape, const Value& rows, std::int64_t heads);
/// attn_output.transpose(1, 2).contiguous(), a stack with shape.heads.
Value spread_heads(Tape& on, const AttentionShape& shape, const Value& stack);

/// scores + mask, which is the same for all heads of a sequence.
/// @param mask  the result of attention_mask(); empty: the call makes one
Value add_mask(Tape& on, const AttentionShape& shape, const Value& scores, const Value& mask);

/// transformers' eager_attention_forward, with full matrices of scores.
Value attend_eagerly(Tape& on, SoftmaxType softmax, const AttentionShape& shape, const Value& q,
                     const Value& k, const Value& v, const Value& mask);

}  // namespace dstune::nn
