// How far the uncertainty of a host-overhead profile leaves open which of two configurations is
// faster.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// How much nearer to each other two measurements of one run may truly be, because of the
/// uncertainty of the profile with which both were measured: a standard deviation, relative to the
/// faster step, for the same work as `metric` counts it (latency: a step, whatever its batch). It
/// is 0 with the profile "none".
///
/// An error of the profile is in both steps, so that only the difference of their events counts.
/// The errors of several events are independent; a factor that all have in common (a preset's)
/// moves them together, half as far down as up if it is 2. On the CPU backend all of the host's
/// time is in the step, elsewhere only the time in which the device had nothing to do
/// (HostLine::idle).
double profile_spread(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b);

/// Whether it depends on the profile which of the two is faster: their gap is within
/// noise_threshold() and profile_spread() together (root of the sum of squares), and not because of
/// noise alone, that is, the gap or the spread is above the noise.
bool hangs_on_profile(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b);

}  // namespace dstune
