// How much of a core this rank's thread gets while it works.
#pragma once

#include <vector>

#include "core/device/device.hpp"
#include "core/experiment/outcome/core_use.hpp"

namespace dstune {

/// Adds up the steps of one experiment. Local; the thread that makes it is the one that works.
class CoreMeter {
 public:
  /// Probes the core, in less than a millisecond; of a GPU its peaks are the probe.
  /// @param device  must outlive it
  CoreMeter(Device& device, DType dtype);

  /// Around each step.
  void begin_step();
  /// @param total    wall time of the step
  /// @param exposed  of it, what was waited for in collectives
  void end_step(Seconds total, Seconds exposed);

  /// One element; none where time is virtual.
  std::vector<CoreUse> use() const;

 private:
  bool works_here_;  ///< the device's work is done by this thread, in its calls
  CoreUse use_;
  Seconds begin_ = 0;
};

}  // namespace dstune
