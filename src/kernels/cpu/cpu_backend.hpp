// The CPU as a Backend.
#pragma once

#include <memory>
#include <optional>

#include "core/device/backend.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/choose_products.hpp"

namespace dstune::cpu {

/// The host: its processor, its memory, and what nobody uses of that.
DeviceInfo describe_device(const Placement& placement = {});

/// Multiplies with what the environment asks for (read_product_choice()), and sets how the C
/// library of this process keeps memory (keep_freed_memory()).
std::unique_ptr<Backend> make_backend(const Placement& placement);

/// Keeps the device as long as the memory limit stays, what the BLAS takes for itself, and who
/// multiplies, which all ranks of an experiment agree on. What the C library keeps goes back to the
/// system after every experiment (run_experiment): limits may promise more than the host has.
class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(ProductChoice choice = ProductChoice::blas) : choice_(choice) {}

  Device& device(const DeviceShare& share) override;
  std::unique_ptr<Collectives> collectives(Group& group, const HostCollectives& over_host) override;

 private:
  void set_threads(int threads);

  ProductChoice choice_;
  OnednnTypes types_;  ///< that oneDNN has with threads_
  std::optional<CpuDevice> device_;
  int threads_ = 0;  ///< of the BLAS; 0: not yet set
};

}  // namespace dstune::cpu
