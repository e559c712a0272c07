// Attention between a block's projections, as transformers runs it.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// The type in which eager attention's softmax computes: the model's dtype (GPT-2, BERT), or
/// torch.float32 with the result cast back, as in nearly all other models.
enum class SoftmaxType { model, fp32 };

/// True if attention is eager. transformers has no sdpa for capped scores: such a model is eager
/// unless it is asked for flash.
bool is_eager(const BatchContext& context, const AttentionShape& shape);

/// The mask that a transformer makes once for all its layers of this shape. It is empty where none
/// is made: attention is not eager, or every query sees every key.
Value attention_mask(Tape& on, const AttentionShape& shape);

/// `count` heads of `value`, which has columns (M, count * head_size) or is a stack of (M,
/// head_size).
Heads heads_of(const Value& value, std::int64_t count);

/// Attention as BatchContext::attention says. Packed sequences are computed one by one, so that
/// they cost the sum of their squares (docs/decisions/attention.md).
/// @param q     (M, heads * head_size); k and v (M, kv_heads * head_size). They may be columns of
/// another matrix, or a stack of heads (M, head_size), `step` columns apart
/// @param mask  the result of attention_mask(), which layers share; empty: the call makes one where
/// it needs one
/// @returns (M, heads * head_size)
Value attend(Tape& on, SoftmaxType softmax, const AttentionShape& shape, const Value& q,
             const Value& k, const Value& v, const Value& mask);

}  // namespace dstune::nn
