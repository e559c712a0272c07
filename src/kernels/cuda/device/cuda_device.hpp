// A GPU as a Device.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "core/device/device.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/device/launch_backlog.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"
#include "kernels/host/passes.hpp"
#include "kernels/host/threads.hpp"

namespace dstune {
struct RowGroups;
}

namespace dstune::cuda {

/// Operations are queued on the current stream and run later; nothing waits but the calls that
/// Device says so of, and these answer the dispatcher meanwhile (tick()).
///
/// Kernels store elements as the tensors say and compute in fp32. Matrix products of 16-bit types
/// are summed in fp32, but parts of a long sum may meet in 16 bits; those of fp32 are exact: both
/// as PyTorch's defaults are. Dropout masks and random numbers are the CPU backend's, bit for bit
/// for the masks. The same call on the same values gives the same bits, but for the libraries'
/// products and attention, of which that is not known.
class CudaDevice final : public Device {
 public:
  /// @param gpu, products  must outlive it
  /// @param threads        of passes of the host over offloaded tensors
  CudaDevice(Gpu& gpu, MatrixProducts& products, Bytes memory_limit, int threads = 1);
  /// The streams must be done.
  ~CudaDevice() override { free_all_pending(); }

  std::string name() const override { return gpu_.name(); }
  bool overlaps() const override { return true; }
  int host_threads() const noexcept override { return threads_; }
  void limit_host_threads(int most) override { host_team().limit(most); }

  std::int64_t attention_workspace(const AttentionShape& shape) const override;
  void write(std::span<const float> values, Tensor out) override;
  void read(Tensor in, std::span<float> values) override;

  bool has_passed(const Event& event) const override;
  Seconds time_of(const Event& event) const override;
  std::unique_ptr<DriveFile> open_drive_file(const std::string& directory) override;
  void spend_host_time(Seconds time) override;
  Seconds now() const override;
  std::optional<DeviceReading> reading() override;
  std::optional<DevicePeaks> peaks(DType dtype) override;

  Gpu& gpu() noexcept { return gpu_; }
  /// A stream on which so many launches follow: waits first if it holds too many.
  /// @throws as a wait
  cudaStream_t stream_for(Stream which, int launches);
  /// Called while the host waits, beside tick(): whoever knows why it may wait in vain throws.
  void on_wait(std::function<void()> callback) { on_wait_ = std::move(callback); }

 private:
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;
  void* do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) override;
  void do_free_on_host(Tier tier, void* data, Bytes size) noexcept override;
  void do_transfer(const HostTransfer& copy) override;
  void do_record(Stream stream, Event& event) override;
  void do_wait(Stream stream, const Event& event) override;
  void do_host_wait(const Event& event) override;
  void do_synchronize() override;
  float do_read_scalar(Tensor scalar, const Event& end) override;

  void meanwhile() const;
  void throw_what_failed() const;
  /// The current one, for so many launches.
  cudaStream_t stream(int launches = 1) { return stream_for(current_stream(), launches); }
  /// Gpu::kScratch bytes, undefined contents, for this operation alone.
  template <class T>
  T* scratch() {
    return static_cast<T*>(gpu_.scratch(current_stream()));
  }
  /// Copies in the order of the current stream, and waits for it.
  void copy_and_wait(void* to, const void* from, Bytes size, cudaMemcpyKind kind);
  /// Waits for what is queued before.
  std::vector<std::int32_t> ends_of(const RowGroups& groups);

#define DSTUNE_COMPUTE(Operation) void compute(const Operation& op) override;
  DSTUNE_OPERATIONS(DSTUNE_COMPUTE)
#undef DSTUNE_COMPUTE
#define DSTUNE_COMPUTE_ON_HOST(Operation)                         \
  void compute_on_host(const Operation& op) override {            \
    host::compute(host_team(), op, {.tick = [this] { tick(); }}); \
  }
  DSTUNE_HOST_OPERATIONS(DSTUNE_COMPUTE_ON_HOST)
#undef DSTUNE_COMPUTE_ON_HOST
  /// Made at their first use, which most experiments do not have.
  host::Threads& host_team();

  int threads_;
  std::unique_ptr<host::Threads> host_team_;
  Gpu& gpu_;
  MatrixProducts& products_;
  LaunchBacklog backlog_;
  std::function<void()> on_wait_;
  mutable std::shared_ptr<const void> origin_;  ///< where time_of() counts from
  mutable Seconds origin_time_ = 0;
  std::exception_ptr failed_;  ///< of a call that could not throw
};

}  // namespace dstune::cuda
