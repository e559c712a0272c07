// Steps with tensors on the host that the real DeepSpeed took, and the same ones here:
// tests/data/offload_fixture.json, which scripts/make_offload_fixture.py writes and describes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune::test {

/// The rows of the fixture that belong to one of `placements`, in the fixture's order.
std::vector<json::object> offload_rows(std::initializer_list<std::string_view> placements);

/// What was asked of DeepSpeed, and whether it died of it.
const json::array& offload_deaths();

/// The `pinned`, `host` and, if there are some, `locked` bytes of an object of the fixture.
HostUse host_use(const json::object& object);
/// Bytes of all purposes in such an object, but for norms and flags, and a tensor of
/// one element that is in the place of swapped ones.
Bytes sum_without_numbers(const json::object& bytes_by_purpose);

/// A dry device without limits that notes what is asked of its host.
class PinnedRequests final : public DryDevice {
 public:
  PinnedRequests() : DryDevice(kUnlimited) {}

  /// Of the requests for pinned memory, in their order.
  const std::vector<Bytes>& sizes() const { return sizes_; }
  /// What was in use at the moment of the largest sum since begin_peak().
  const HostUse& peak() const { return peak_; }
  void begin_peak() { peak_ = use_; }

 private:
  static constexpr Bytes kUnlimited = Bytes{1} << 60U;

  void* do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) override;
  void do_free_on_host(Tier tier, void* data, Bytes size) noexcept override;

  std::vector<Bytes> sizes_;
  HostUse use_;
  HostUse peak_;
};

/// The rank of a row, whose engine is driven as DeepSpeed was. Fails the test if the row's
/// configuration is one that the engine does not have.
class RankOfRow {
 public:
  explicit RankOfRow(const json::object& row);

  const StepConfig& config() const { return config_; }
  const PinnedRequests& device() const { return device_; }

  /// A step of the optimizer, with which the device's peak begins. Fails the test if it overflows.
  /// @returns the ledgers of its phases by their names in the fixture, "MICRO_STEP forward", ...
  std::map<std::string, Ledger> step();
  /// What was in use on the device at the end of the last backward.
  Bytes device_after_backward() const { return device_after_backward_; }

 private:
  void forward();
  void backward();
  void back_through(const ModuleSpec& module);

  StepConfig config_;
  ModelParameters model_;
  PinnedRequests device_;
  DryCollectives collectives_;
  std::unique_ptr<ZeroEngine> engine_;
  Bytes device_after_backward_ = 0;
};

}  // namespace dstune::test
