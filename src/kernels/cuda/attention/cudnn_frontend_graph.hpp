// Attention as graphs of cuDNN's frontend, with the plans that cuDNN makes of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// How the heads of a tensor lie: `count` of them in a row.
struct FusedHeads {
  std::int64_t count = 0;
  std::int64_t row_stride = 0;  ///< elements
  std::int64_t head_stride = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm
  auto operator<=>(const FusedHeads&) const = default;
};

/// All that a plan depends on.
struct FusedShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t head_size = 0;
  bool causal = true;
  std::int64_t window = 0;  ///< 0: none
  double scale = 0;
  double dropout = 0;  ///< probability
  DType dtype = DType::bf16;
  FusedHeads q;
  FusedHeads k;
  FusedHeads v;
  FusedHeads out;  ///< and its gradient
  bool backward = false;
  FusedHeads d_q = {};
  FusedHeads d_k = {};
  FusedHeads d_v = {};

  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm
  auto operator<=>(const FusedShape&) const = default;
};

/// A tensor of a graph.
enum FusedTensor : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kStats,
  kDOut,
  kDQ,
  kDK,
  kDV,
  kSeed,  ///< and the offset: of the random generator, where something is dropped
  kOffset,
};

/// A call of cuDNN failed for `reason`.
/// @throws OutOfMemoryError  if no memory was found
/// @throws DeviceLostError   if CUDA has lost the device
void check_device_after(std::string_view reason);

/// A graph with its plan.
class FusedPlan {
 public:
  /// @throws NoPlanError  if cuDNN, or what it needs, cannot do it
  /// @throws OutOfMemoryError, DeviceLostError, CudaError
  FusedPlan(cudnnHandle_t handle, const FusedShape& shape);
  ~FusedPlan();
  FusedPlan(const FusedPlan&) = delete;
  FusedPlan& operator=(const FusedPlan&) = delete;

  std::int64_t workspace() const noexcept { return workspace_; }  ///< bytes
  /// Queues it on the stream of `handle`. @throws NoPlanError too, as any error of this one call
  void run(cudnnHandle_t handle, std::unordered_map<std::int64_t, void*> tensors,
           void* workspace) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  std::int64_t workspace_ = 0;
};

}  // namespace dstune::cuda
