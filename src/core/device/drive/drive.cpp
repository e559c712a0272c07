#include "core/device/drive/drive.hpp"

#include <stdexcept>

namespace dstune {
namespace {

// Drives take requests that begin at multiples of their logical blocks, of 4 KiB at most.
constexpr Bytes kAlignment = 4096;

}  // namespace

Drive::Drive(Device& device, const std::string& directory)
    : device_(device), file_(device.open_drive_file(directory)) {}

Drive::~Drive() { device_.host_memory().give_back(Tier::nvme, taken_); }

DriveExtent Drive::take(MemoryCategory category, Bytes size) {
  device_.host_memory().take(Tier::nvme, category, size);
  const DriveExtent extent{end_, size};
  taken_ += size;
  end_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  try {
    file_->grow_to(end_);
  } catch (const DriveError& error) {
    throw OutOfMemoryError(category, size, taken_ - size, kNoLimit, 0, error.what(), Tier::nvme);
  }
  return extent;
}

void DriveHandle::start(Transfer direction, const DriveExtent& extent, Tensor tensor,
                        TransferPurpose purpose) {
  if (tensor.size() > extent.size) throw std::logic_error("a tensor does not fit in its file");
  device_.start_on_drive(*queue_, {direction, tensor, extent.offset}, purpose);
}

}  // namespace dstune
