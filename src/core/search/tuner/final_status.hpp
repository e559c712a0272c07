// How a run ended, as its exit code and status.json say it.
#pragma once

#include "core/base/units.hpp"
#include "core/report/files/status_file.hpp"
#include "core/search/tuner/tuner.hpp"

namespace dstune {

/// Found, interrupted, nothing fits or failed, with what to do next.
/// @param elapsed  since the start of the run, continued over resumes
RunStatus final_status(const TuningResult& result, Seconds elapsed);

}  // namespace dstune
