// The device of a dry run: it folds work that repeats itself, and sums up all that is asked of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"

namespace dstune {

class DryRunMemory;

/// A hash of everything that happened, in order. Addresses are not part of it.
class Walk {
 public:
  void add(std::uint64_t what) noexcept {
    number_ = (number_ ^ what) * 0x9E3779B97F4A7C15U;
    number_ ^= number_ >> 29U;
  }
  std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_ = 1;
};

/// A device on which the cost of a rehearsal depends neither on the number of micro-steps nor on
/// that of ranks.
class RehearsalDevice final : public DryDevice {
 public:
  /// @param imitated  see DryDevice
  /// @param known  may know what `imitated` says; walk and it must outlive this
  RehearsalDevice(Bytes memory_limit, const Device* imitated, Walk& walk,
                  DryRunMemory* known = nullptr)
      : DryDevice(memory_limit, imitated), walk_(walk), known_(known) {}

  bool folds() const override { return true; }
  std::int64_t attention_workspace(const AttentionShape& shape) const override;
  void spend_host_time(Seconds time) override;

 protected:
  void account(const Work& work) override;
  Seconds time_on_drive(const DriveTransfer& transfer) override;
  void wait_until(Seconds end) override;

 private:
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;
  void do_record(Stream stream, Event& event) override;
  void do_wait(Stream stream, const Event& event) override;
  void do_host_wait(const Event& event) override;
  void do_synchronize() override;
  void on_give_back(void* data, Stream home,
                    const std::array<bool, kStreams>& used_on) noexcept override;

  Walk& walk_;
  DryRunMemory* known_;
};

/// Collectives whose messages belong to the walk too.
class RehearsalCollectives final : public DryCollectives {
 public:
  /// @param walk  must outlive this
  RehearsalCollectives(Device& device, int rank, int size, Walk& walk)
      : DryCollectives(device, rank, size), walk_(walk) {}

 private:
  void touch(CollectiveKind kind, Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  Walk& walk_;
};

}  // namespace dstune
