// NVIDIA's libraries without the device around them, and kernels that the device did not choose.
#pragma once

#include <functional>
#include <string>

#include "bench/gpu/stopwatch.hpp"
#include "core/device/device.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::bench {

/// Queues `op` on the compute stream by cuBLASLt itself, with the fastest of the algorithms that it
/// proposes for the shape, each of which is timed first. Empty where there is no such library.
std::function<void()> product_alone(Device& device, Stopwatch& stopwatch, const Gemm& op);

/// Attention, and its backward, by one implementation; empty where there is none.
struct AttentionKernels {
  std::function<void()> forward;
  std::function<void()> backward;
};
/// Name of cuDNN's, or why there is none.
std::string cudnn_name();
AttentionKernels attention_by_cudnn(Device& device, const Attention& op,
                                    const AttentionBackward& backward);
/// Of kernels of our own.
AttentionKernels attention_by_own(Device& device, const Attention& op,
                                  const AttentionBackward& backward);
/// fp32 elements of scratch that the two need at most.
std::int64_t attention_workspace_of_all(const AttentionShape& shape);

}  // namespace dstune::bench
