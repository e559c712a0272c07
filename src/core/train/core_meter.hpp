// How much of a core this rank's thread gets while it works.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/experiment/outcome/core_use.hpp"

namespace dstune {

/// Adds up the core time of the steps of one experiment, and counts their page faults.
/// Local; it is made by the thread that works.
class CoreMeter {
 public:
  /// Probes the core, which takes less than a millisecond; a GPU's probe is the measurement of its
  /// peaks.
  /// @param device  must outlive it
  CoreMeter(Device& device, DType dtype);

  /// begin_step() and end_step() are called around each step.
  void begin_step();
  /// @param total    seconds of the step with all of its micro-steps
  /// @param exposed  the part of it in which this rank waited for collectives
  /// @param ran      the share of the step that ran (StepReport::ran)
  void end_step(Seconds total, Seconds exposed, double ran = 1);

  /// One element, or none where time is virtual.
  std::vector<CoreUse> use() const;

 private:
  bool works_here_;  ///< the device's work is done by this thread, in its calls
  CoreUse use_;
  Seconds begin_ = 0;
  std::int64_t faults_at_begin_ = 0;
  std::vector<std::int64_t> page_faults_;  ///< by step, as if all of it had run
};

}  // namespace dstune
