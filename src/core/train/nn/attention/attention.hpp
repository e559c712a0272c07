// Attention between a block's projections, as transformers runs it.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// In what eager attention's softmax computes: the model's dtype (GPT-2, BERT), or torch.float32
/// with its result cast back, as nearly all others.
enum class SoftmaxType { model, fp32 };

/// transformers has no sdpa for capped scores: such a model is eager unless it is asked for flash.
bool is_eager(const BatchContext& context, const AttentionShape& shape);

/// The mask that a transformer makes once for all its layers of this shape; empty where none is
/// made: not eager, or every query sees every key.
Value attention_mask(Tape& on, const AttentionShape& shape);

/// `count` heads, columns of (M, count * head_size) or a stack of (M, head_size).
Heads heads_of(const Value& value, std::int64_t count);

/// As BatchContext::attention says; packed sequences one by one, so that they cost the sum of their
/// squares (docs/decisions/attention.md).
/// @param q     (M, heads * head_size); k and v (M, kv_heads * head_size); columns of another will
/// do, and a stack of heads (M, head_size), `step` columns apart
/// @param mask  attention_mask()'s, which layers share; empty: one of its own where it needs one
/// @returns (M, heads * head_size)
Value attend(Tape& on, SoftmaxType softmax, const AttentionShape& shape, const Value& q,
             const Value& k, const Value& v, const Value& mask);

}  // namespace dstune::nn
