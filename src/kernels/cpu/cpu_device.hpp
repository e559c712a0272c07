// The CPU as a Device: one thread of plain loops, and BLAS or oneDNN for the matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "kernels/cpu/allocator.hpp"
#include "kernels/cpu/products/products.hpp"
#include "kernels/host/nvme/swap_file.hpp"
#include "kernels/host/passes.hpp"
#include "kernels/host/threads.hpp"

namespace dstune::cpu {

/// Every operation is finished when its call returns. Elements are stored as the tensors say and
/// computed in fp32, but for products of bf16 where oneDNN has them. Dropout masks and random
/// numbers depend on seed and index alone, so a shard gets what the whole tensor would have had.
///
/// Long operations tick() about every millisecond, matrix products every 4 GFLOP, of bf16 32 GFLOP.
///
/// Beside the budgeted buffers the device owns scratch for 16-bit operands and column sums. It is
/// not counted, since hardware with 16-bit arithmetic has none: at most 8 MiB for gemm,
/// 8 * sequence * head_size * 4 bytes for attention, 4 bytes per element of a group for
/// quantisation, 8 to 16 bytes per token for the embedding's backward (a stable sort), 8 bytes per
/// column for the others. Nor is what oneDNN packs operands into and sums in: of the size of a
/// product's operands.
class CpuDevice final : public Device {
 public:
  /// @param threads  of passes of the host over offloaded tensors; all else has one
  explicit CpuDevice(Bytes memory_limit, int threads = 1);

  std::string name() const override { return "cpu"; }
  int host_threads() const noexcept override { return threads_; }
  void limit_host_threads(int most) override { host_team().limit(most); }

  /// Who multiplies: the BLAS, until somebody else is chosen.
  Products& products() { return products_; }

  std::int64_t attention_workspace(const AttentionShape& shape) const override;
  void write(std::span<const float> values, Tensor out) override;
  void read(Tensor in, std::span<float> values) override;

  std::unique_ptr<DriveFile> open_drive_file(const std::string& directory) override {
    return host::make_swap_file(directory, [this] { tick(); });
  }
  void spend_host_time(Seconds time) override;
  Seconds now() const override;
  void trim() override;

 private:
  void do_record(Stream /*stream*/, Event& event) override { event.time = now(); }
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void* do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) override;
  void do_free_on_host(Tier tier, void* data, Bytes size) noexcept override;
  void do_free(void* data, Bytes size) noexcept override;

  /// At least `elements` floats, undefined contents, valid until the next call.
  float* scratch(std::int64_t elements);
  /// Computes, and keeps the host busy until the training's library would be through, if its time
  /// for each of `elements` is known.
  template <class Operation>
  void paced(const Operation& op, std::optional<TimedOperation> operation,
             Seconds OperationRate::*pass, DType dtype, std::int64_t elements);
  /// Keeps the host busy until `end`, for the time by which the training's library is slower.
  void wait_until(Seconds end);
  void attend(const Attention& op);
  void attend_back(const AttentionBackward& op);
  void multiply(const Gemm& op);
  void gemm_fp32(const Gemm& op);
  void gemm_16bit(const Gemm& op);
  void gemm_bf16(const Gemm& op);

#define DSTUNE_COMPUTE(Operation) void compute(const Operation& op) override;
  DSTUNE_OPERATIONS(DSTUNE_COMPUTE)
#undef DSTUNE_COMPUTE
#define DSTUNE_COMPUTE_ON_HOST(Operation)                         \
  void compute_on_host(const Operation& op) override {            \
    host::compute(host_team(), op, {.tick = [this] { tick(); }}); \
  }
  DSTUNE_HOST_OPERATIONS(DSTUNE_COMPUTE_ON_HOST)
#undef DSTUNE_COMPUTE_ON_HOST
  // What those of paced.cpp compute.
  void calculate(const Dropout& op);
  void calculate(const DropoutBackward& op);
  void calculate(const Activate& op);
  void calculate(const ActivateBackward& op);
  void calculate(const GeluNew& op);
  void calculate(const GeluNewBackward& op);
  void calculate(const Glu& op);
  void calculate(const GluBackward& op);
  void calculate(const LayerNorm& op);
  void calculate(const LayerNormBackward& op);
  void calculate(const RmsNorm& op);
  void calculate(const RmsNormBackward& op);
  void calculate(const Rotate& op);
  void calculate(const LogSoftmax& op);
  void calculate(const LogSoftmaxBackward& op);

  /// Made at its first use, which most experiments do not have.
  host::Threads& host_team();

  int threads_;
  std::unique_ptr<host::Threads> host_team_;
  Allocator allocator_;
  Products products_;
  std::vector<float> scratch_;
};

}  // namespace dstune::cpu
