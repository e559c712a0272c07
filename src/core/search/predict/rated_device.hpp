// A device and collectives that take the time that a machine's rates say.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/device/clocked_device.hpp"
#include "core/device/dry_collectives.hpp"
#include "core/device/machine_rates.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// The step's own code on it takes as long as the machine would, and the host's clock knows which
/// StepPart took how long. Memory has no limit.
class RatedDevice final : public ClockedDevice {
 public:
  /// `rates` must outlive it.
  /// @param imitated  see DryDevice
  /// @param factors   by which each part takes longer than the rates say
  explicit RatedDevice(const MachineRates& rates, const Device* imitated = nullptr,
                       const PartFactors& factors = kAsRated)
      : ClockedDevice(std::numeric_limits<Bytes>::max(), imitated),
        rates_(rates),
        factors_(factors) {}

  std::string name() const override { return "predicted"; }
  bool overlaps() const override { return rates_.overlaps; }
  void spend_host_time(Seconds time) override {
    advance_host(time * factors_[index_of(StepPart::host)], index_of(StepPart::host));
  }

  const MachineRates& rates() const noexcept { return rates_; }
  /// Keeps the current stream busy for `time`, but for its factor.
  void take(StepPart part, Seconds time) {
    advance(time * factors_[index_of(part)], index_of(part));
  }
  /// Where its host's time went, up to now.
  StepTime time() const;

 private:
  void account(const Work& work) override;
  void multiply(const Work& product);

  const MachineRates& rates_;
  PartFactors factors_;
};

/// See CollectiveRate.
class RatedCollectives final : public DryCollectives {
 public:
  /// `device` must outlive this.
  /// @throws std::invalid_argument  unless 0 <= rank < size
  RatedCollectives(RatedDevice& device, int rank, int size)
      : DryCollectives(device, rank, size), rated_(&device) {}

 private:
  void account(CollectiveKind kind, Bytes bytes) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  RatedDevice* rated_;
};

}  // namespace dstune
