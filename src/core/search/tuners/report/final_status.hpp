// How a run ended, as its exit code and status.json say it.
#pragma once

#include "core/base/units.hpp"
#include "core/report/files/status_file.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {

/// What a run and a plan say then, and what to do.
constexpr const char* kNothingFits =
    "no experiment fits in memory; raise memory_limit, use more ranks or a smaller model";

/// Found, interrupted, nothing fits or failed, with what to do next.
/// @param elapsed  since the start of the run, continued over resumes
RunStatus final_status(const TuningResult& result, Seconds elapsed);

}  // namespace dstune
