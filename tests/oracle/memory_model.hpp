// Model states by formula: what one rank holds for parameters, gradients, optimizer and buckets.
// Pure arithmetic: nothing is allocated, no device, no collectives.
#pragma once

#include "core/device/memory/memory_budget.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune::oracle {

/// Bytes per category; activations are predict_activations()'s part and 0 here.
struct ModelStateMemory {
  MemoryUse resident;  ///< between optimizer steps, from the first update on
  MemoryUse peak;      ///< largest use of each category over such a step, each at its own moment
};

/// What `rank` holds by docs/deepspeed-step.md, "Memory of stage 0" to "Memory of stage 3".
/// Resident, in bytes:
///
///   stage       parameters  gradients  optimizer          buckets
///   0           e P         -          s P fp32, (4+s) P  -
///   1 and 2     e A         -          (4+s) A / N        -
///   1, BF16     2 A         4 A        (4+s) A / N        -
///   3           e (S + T)   a S        (4+s) S            m K with contiguous_gradients
///
/// Peaks beyond that:
///
///   stage       parameters  gradients                          buckets
///   0           -           e P + autograd's                   -
///   1           -           e P + autograd's, or + e B         e K C
///   1, own sums -           a P + autograd's, or + e B         e K C
///   1, BF16     -           2 P + autograd's                   -
///   2           -           e B (2 e B: g > 1) + autograd's    e K C
///   3           e live      autograd's                         -
///
///   stage       temporaries: the largest of
///   0           e F + c F; update: fp32 t P; 16-bit fused 8 P, unfused (4 + t) P, Lamb (2 e + 4) P
///   1 and 2     reduce e R + c R; norm 8 o;
///               update (a + 4) p, fp32 4 p, and (4 + t) p
///   1, BF16     4 l; 4 F + c F, with whole groups; update t p
///   3           gathers + reduction; overflow (fp16) S; norm 8 h;
///               update (a + 4) u, a = 4: 4 u, and (4 + t) u
///
/// Stage 3's live tensors, gathers and reductions depend on the order of all hooks and are found by
/// a walk over two steps (memory_sharded.hpp). Everywhere attention's scratch counts as
/// temporaries.
///
/// s     bytes of optimizer state per element: Adam and Lamb 8; Lion, Adagrad and SGD with momentum
///       4; plain SGD 0. Adagrad: e P more in stages 1 and 2 and in stage 0 in 16 bit, see
///       leaves_unused_state()
/// t     bytes of the optimizer's scratch per element: Adagrad 8, SGD with weight decay 4, others 0
/// e, a  bytes of the model dtype; of a sum over micro-steps (stages 1 and 3; otherwise e)
/// c     bytes of the communication dtype, or 0 where nothing is cast to it; m: not 0 there
/// g     accumulation_steps
/// P     elements of all tensors; N: group_size; K: reduce_bucket_size; C: 2 with overlap_comm
/// l     elements of the largest tensor
/// A     P with each parameter group padded to a multiple of 2 N; p: largest group's A / N
/// B     elements of the tensors that touch this rank's partitions
/// o, h  elements of the rank's largest owned slice; of the largest shard
/// S     sum over tensors of ceil(n / N); u: shards of the largest sub-group
/// F     stage 0's largest all-reduce: the walk closes after the tensor with which it exceeds 5e8.
///       e F only of several tensors
/// R     largest all-reduce: of slices of several owners; without contiguous_gradients of a list of
///       several gradients; without multi-rank buckets of several slices of one owner; e R: only of
///       several, so 0 with reduce_scatter = false
/// T     elements of persistent tensors, padded to a multiple of N; 0 for N = 1
/// live  full tensors beyond T, from their gather (packed: from its end) to their release
///
/// autograd's: gradients before their hook and in it (the tied embedding's is held from the head's
/// backward to the end, where the embedding's dense one joins it and, below stage 3, their sum is a
/// third), and extra-large ones (n > K) that wait for their reduction; without contiguous_gradients
/// K C is 0, B is made of tensors and whole buckets wait. In stage 1 all `.grad`s shrink bucket by
/// bucket while B fills. These depend on the order of arrival and are found by a walk over it.
///
/// fp32 differs from 2.3's "(2 e + 4) P / N" in the update: the cast is none, PyTorch makes no
/// copy.
///
/// @param rank               0 <= rank < group_size
/// @param attention_scratch  bytes, Device::attention_workspace() in fp32; 0 for a fused kernel
ModelStateMemory predict_model_states(const StepConfig& config, const ModelParameters& parameters,
                                      int group_size, int rank, Bytes attention_scratch = 0);

}  // namespace dstune::oracle
