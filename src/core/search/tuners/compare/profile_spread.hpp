// What the uncertainty of a host-overhead profile leaves open of which configuration is faster.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// How far two of one run may truly be nearer to each other than they were measured, by what is not
/// known of the profile that both were measured with: a standard deviation, relative to the faster
/// step; for the same work, as `metric` counts it (latency: a step, whatever its batch). 0 with the
/// profile "none".
///
/// An error of the profile is in both steps, so that only what one has more of counts. What several
/// events are off is independent; a factor that all have in common (a preset's) moves them
/// together, half as far down as up if it is 2. On the CPU backend all of the host's time is in the
/// step, elsewhere only that of which the device had nothing to do (HostLine::idle).
double profile_spread(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b);

/// Whether who is faster of the two hangs on the profile: their gap is within noise_threshold() and
/// profile_spread() together (root of the sum of squares), and not because of noise alone: the gap
/// is above the noise, or the spread is.
bool hangs_on_profile(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b);

}  // namespace dstune
