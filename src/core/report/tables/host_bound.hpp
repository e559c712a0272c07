// Whether a measured step waits for the training's host code, and what would move it.
#pragma once

#include <string>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// From this share of a step on the text below says that it is bound by the host.
constexpr double kHostBoundShare = 0.1;

/// The share of the step that waits for the host, and what of these waits a larger micro-batch,
/// torch.compile and fewer modules would save at most, as a Markdown table; "" below
/// kHostBoundShare, and for an experiment without times.
std::string host_bound_text(const Experiment& experiment, const Measured& measured);

}  // namespace dstune
