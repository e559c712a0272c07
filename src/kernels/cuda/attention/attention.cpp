// Attention: cuDNN's where it was built in and can do it, else our own.
#include "core/device/operations/attention.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/attention/stand_in.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

namespace {

constexpr int kMostLaunches = 5;  // of one pass, whoever does it

}  // namespace

std::int64_t CudaDevice::attention_workspace(const AttentionShape& shape) const {
  return std::max(own_attention_workspace(shape), fused_attention_workspace(shape));
}

void CudaDevice::compute(const Attention& op) {
  assert(op.q.matrix.rows == op.shape.rows() && op.k.matrix.rows == op.shape.rows());
  assert(op.v.matrix.rows == op.shape.rows() && op.out.rows == op.shape.rows());
  assert(op.lse.numel == op.shape.batch * op.shape.heads * op.shape.sequence);
  const bool is_fused = fused_attention(op, scratch<std::int64_t>(), stream(kMostLaunches));
  if (!is_fused) own_attention(op, stream());
  if (op.shape.softcap != 0) return;  // which only PyTorch's chain of kernels can do
  const DType dtype = op.out.dtype;
  const AttentionKernel theirs = pytorch_attention(compute_capability(), op.shape, dtype);
  const AttentionKernel ours = is_fused ? AttentionKernel::cudnn : own_kernel(op.shape, dtype);
  note_stand_in(ledger(), theirs, ours);
}

void CudaDevice::compute(const AttentionBackward& op) {
  assert(op.workspace.dtype == DType::fp32);
  assert(op.workspace.numel >= own_attention_workspace(op.shape));
  assert(op.d_out.rows == op.out.rows && op.d_q.matrix.rows == op.out.rows);
  assert(op.d_k.matrix.rows == op.out.rows && op.d_v.matrix.rows == op.out.rows);
  if (!fused_attention_backward(op, scratch<std::int64_t>(), stream(kMostLaunches))) {
    own_attention_backward(op, stream());
  }
}

}  // namespace dstune::cuda
