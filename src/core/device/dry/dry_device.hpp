// A device without arithmetic: it counts memory exactly and computes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/device/device.hpp"

namespace dstune {

/// Runs a training step to find what it allocates and calls, on any machine: memory has no contents
/// (computes() is false), the budget is exact, and every operation returns at once. Addresses are
/// distinct and not null, but must never be read. Numbers that are read back are 0.
///
/// Its work is done in the order of the calls, but if streams of the imitated device overlap,
/// memory is in flight as long as their end is not known without a clock: until the host has waited
/// for it.
///
/// A device that derives from it sees every operation, and every write() and read(), in account().
class DryDevice : public Device {
 public:
  /// @param imitated  the device whose scratch is counted, and whose streams decide whether memory
  ///        may be in flight; none: a GPU with fused kernels
  explicit DryDevice(Bytes memory_limit, const Device* imitated = nullptr)
      : Device(memory_limit), imitated_(imitated) {}

  std::string name() const override { return "dry"; }
  bool computes() const final { return false; }

  /// The workspace of the imitated device; without one it is 0, as a fused GPU kernel's tiles stay
  /// on the chip.
  std::int64_t attention_workspace(const AttentionShape& shape) const override;
  void write(std::span<const float> values, Tensor out) override;
  void read(Tensor in, std::span<float> values) override;

  bool has_memory_in_flight() const override {
    return imitated_ == nullptr || imitated_->overlaps();
  }
  bool has_passed(const Event& event) const override {
    return !has_memory_in_flight() || has_waited_for(event);
  }
  std::unique_ptr<DriveFile> open_drive_file(const std::string& directory) override;
  void spend_host_time(Seconds /*time*/) override {}
  Seconds now() const override { return 0; }

 protected:
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;
  /// How long a read or write takes, which begins when the one before it in its queue has ended.
  virtual Seconds time_on_drive(const DriveTransfer& transfer) {
    (void)transfer;
    return 0;
  }
  /// The host goes on at `end`, unless that has passed.
  virtual void wait_until(Seconds end) { (void)end; }

 private:
  class File;
#define DSTUNE_COMPUTE_NOTHING(Operation) \
  void compute(const Operation& /*operation*/) final {}
  DSTUNE_OPERATIONS(DSTUNE_COMPUTE_NOTHING)
#undef DSTUNE_COMPUTE_NOTHING
#define DSTUNE_COMPUTE_NOTHING_ON_HOST(Operation) \
  void compute_on_host(const Operation& /*operation*/) final {}
  DSTUNE_HOST_OPERATIONS(DSTUNE_COMPUTE_NOTHING_ON_HOST)
#undef DSTUNE_COMPUTE_NOTHING_ON_HOST

  const Device* imitated_;
  std::uintptr_t next_address_ = 4096;
};

}  // namespace dstune
