// A device and collectives that take the time that a machine's rates give, without computing.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/device/dry/clocked_device.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/rates/host_rates.hpp"
#include "core/device/rates/machine_rates.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// The step's own code takes as long on it as on the machine, and its clock records how long each
/// StepPart took. Memory has no limit.
class RatedDevice final : public ClockedDevice {
 public:
  /// `rates` must outlive it.
  /// @param factors  the factors by which each part takes longer than the rates say
  explicit RatedDevice(const MachineRates& rates, const PartFactors& factors = kAsRated)
      : ClockedDevice(std::numeric_limits<Bytes>::max()),
        rates_(rates),
        factors_(factors),
        host_rates_(rates.host.value_or(HostRates{})) {}

  std::string name() const override { return "predicted"; }
  bool overlaps() const override { return rates_.overlaps; }
  void spend_host_time(Seconds time) override {
    advance_host(time * factors_[index_of(StepPart::host)], index_of(StepPart::host));
  }

  const MachineRates& rates() const noexcept { return rates_; }
  /// Keeps the current stream busy for `time` multiplied by the part's factor.
  void take(StepPart part, Seconds time) {
    advance(time * factors_[index_of(part)], index_of(part));
  }
  /// The parts to which the host's time went, up to now.
  StepTime time() const;

 private:
  void account(const Work& work) override;
  /// Whether its host is told apart from it. Where both are one and nobody has measured the host, a
  /// copy or a pass is like any other.
  bool knows_host() const { return rates_.overlaps || rates_.host; }
  void account_on_host(const Work& work) override;
  void do_transfer(const HostTransfer& copy) override;
  Seconds time_on_drive(const DriveTransfer& transfer) override {
    return host_rates_.time_of(transfer) * factors_[index_of(StepPart::drive)];
  }
  void wait_until(Seconds end) override {
    advance_host(std::max(0.0, end - now()), index_of(StepPart::drive));
  }
  void multiply(const Work& product);
  double product_rate(const Work& product);

  /// A shape of matrix products, identified by the bytes of its operands, and its rate.
  struct KnownProduct {
    std::array<Bytes, 3> operands{};
    double flops_per_s = 0;
  };

  const MachineRates& rates_;
  std::vector<KnownProduct> products_;  ///< a cache, since a step has many products of few shapes
  PartFactors factors_;
  HostRates host_rates_;
};

/// Collectives that take the time of their CollectiveRate; parts of the group and other types have
/// the rates of rate_of().
class RatedCollectives final : public DryCollectives {
 public:
  /// `device` must outlive this.
  /// @throws std::invalid_argument  unless 0 <= rank < size
  /// @param spacing  the distance of its ranks in the experiment's group
  RatedCollectives(RatedDevice& device, int rank, int size, int spacing = 1)
      : DryCollectives(device, rank, size), rated_(&device), spacing_(spacing) {}

 private:
  void touch(CollectiveKind kind, Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  RatedDevice* rated_;
  int spacing_;
};

}  // namespace dstune
