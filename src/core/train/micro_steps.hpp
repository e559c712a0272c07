// Which micro-steps of an optimizer step run, and how the others are counted.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/device.hpp"
#include "core/device/dry/repeated_work.hpp"

namespace dstune {

enum class MicroSteps {
  all,
  /// Those of MicroStepPlan. What is measured of them is the whole step's: its times, its ledger
  /// and its peaks. Losses are those of the micro-steps that ran.
  some,
};

/// Micro-steps from the third on that are not the last are alike (FoldedMicroSteps), so that a step
/// with much accumulation runs its first two or three, two that stand for all that are left out,
/// and the last, with the update.
struct MicroStepPlan {
  std::int64_t first_alike = 0;  ///< the index of the first of the two; the others stand before it
  std::int64_t left_out = 0;     ///< behind the second of the two; 0: every micro-step runs

  /// How often each of the two counts.
  std::uint64_t counted() const { return static_cast<std::uint64_t>(1 + left_out / kAlike); }
  /// Whether the micro-step is the second of the two.
  bool is_last_alike(std::int64_t micro_step) const {
    return left_out > 0 && micro_step == first_alike + kAlike - 1;
  }
  bool is_first_alike(std::int64_t micro_step) const {
    return left_out > 0 && micro_step == first_alike;
  }

  static constexpr std::int64_t kAlike = 2;
};

MicroStepPlan plan_micro_steps(std::int64_t accumulation_steps, MicroSteps which);

/// While it lives, what is entered in the device's ledger and timeline counts for the micro-steps
/// that are left out, too.
class CountedMicroSteps {
 public:
  /// @param device  must outlive it
  CountedMicroSteps(Device& device, std::uint64_t times)
      : ledger_(device.ledger(), times),
        timeline_(device.timeline()),
        outer_(timeline_.count_each(times)) {}
  ~CountedMicroSteps() { timeline_.count_each(outer_); }
  CountedMicroSteps(const CountedMicroSteps&) = delete;
  CountedMicroSteps& operator=(const CountedMicroSteps&) = delete;

 private:
  CountedEach ledger_;
  Timeline& timeline_;
  std::uint64_t outer_;
};

}  // namespace dstune
