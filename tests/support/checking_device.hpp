// A device that finds what streams do to each other's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"

namespace dstune::test {

/// Computes nothing (see DryDevice), but remembers who used what: an operation that touches memory
/// which another stream writes, or writes what another stream reads, without an event between the
/// two is a race, and so is memory that is given back while a stream that nobody named still uses
/// it.
class CheckingDevice final : public DryDevice {
 public:
  using DryDevice::DryDevice;

  bool overlaps() const override { return true; }

  /// One line per race.
  const std::vector<std::string>& races() const { return races_; }

  void account(const Work& work) override;

 private:
  struct Access {
    std::string operation;
    std::uintptr_t begin;
    std::uintptr_t end;
    bool writes;
    Stream stream;
    std::uint64_t tick;  // of the first event of its stream that comes after it
  };
  using Accesses = std::vector<Access>;  // of one allocation

  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;
  void on_give_back(void* data, Stream home,
                    const std::array<bool, kStreams>& used_on) noexcept override;
  Accesses& accesses_to(std::uintptr_t address);
  void check(const Access& access);
  bool comes_after(Stream stream, const Access& access) const;

  std::map<std::uintptr_t, Accesses> allocations_;  // by address
  std::vector<std::string> races_;
};

/// Its collectives, likewise.
class CheckingCollectives final : public DryCollectives {
 public:
  CheckingCollectives(CheckingDevice& device, int rank, int size)
      : DryCollectives(device, rank, size), checking_(device) {}

 private:
  void touch(CollectiveKind kind, Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  CheckingDevice& checking_;
};

}  // namespace dstune::test
