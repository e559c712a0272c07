#include "core/device/dry/dry_device.hpp"

#include <algorithm>

namespace dstune {

namespace {

// Host memory of which as much moves as of the device's, but which lies beside that.
Operand host_operand(std::size_t size) { return Operand().of(size); }

}  // namespace

std::int64_t DryDevice::attention_workspace(const AttentionShape& shape) const {
  return imitated_ == nullptr ? 0 : imitated_->attention_workspace(shape);
}

void DryDevice::write(std::span<const float> values, Tensor out) {
  account({"write", 0, {host_operand(values.size_bytes())}, {out}});
}

void DryDevice::read(Tensor in, std::span<float> values) {
  std::fill(values.begin(), values.end(), 0.0F);
  account({"read", 0, {in}, {host_operand(values.size_bytes())}});
}

class DryDevice::File final : public DriveFile {
 public:
  explicit File(DryDevice& device) : device_(device) {}

  void grow_to(Bytes /*size*/) override {}
  std::unique_ptr<DriveQueue> make_queue(const AioSettings& /*settings*/) override {
    return std::make_unique<Queue>(device_);
  }

 private:
  class Queue final : public DriveQueue {
   public:
    explicit Queue(DryDevice& device) : device_(device) {}

    void start(const DriveTransfer& transfer) override {
      end_ = std::max(end_, device_.now()) + device_.time_on_drive(transfer);
    }
    void wait() override { device_.wait_until(end_); }

   private:
    DryDevice& device_;
    Seconds end_ = 0;  // of the last that was started
  };

  DryDevice& device_;
};

std::unique_ptr<DriveFile> DryDevice::open_drive_file(const std::string& /*directory*/) {
  return std::make_unique<File>(*this);
}

void* DryDevice::do_allocate(MemoryCategory /*category*/, Bytes size_in_bytes) {
  constexpr std::uintptr_t kAlignment = 256;
  const std::uintptr_t address = next_address_;
  // An address advances by at least one unit, so that an empty buffer has an address of its own
  // too.
  next_address_ += (size_in_bytes / kAlignment + 1) * kAlignment;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never read
}

void DryDevice::do_free(void* /*data*/, Bytes /*size*/) noexcept {}

}  // namespace dstune
