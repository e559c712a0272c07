// The end of a run, as its exit code and status.json report it.
#pragma once

#include "core/base/units.hpp"
#include "core/report/files/status_file.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {

/// The status of a run that has ended: found, interrupted, nothing fits or failed, with advice on
/// what to do next.
/// @param elapsed  the time since the start of the run, continued over resumes
RunStatus final_status(const TuningResult& result, Seconds elapsed);

}  // namespace dstune
