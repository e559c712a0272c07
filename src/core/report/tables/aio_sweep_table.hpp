// What the sweep of a drive found, as --nvme-sweep prints it.
#pragma once

#include <string>

#include "core/base/json_fwd.hpp"
#include "core/device/rates/aio_sweep.hpp"

namespace dstune {

/// What was measured, a row for each point, the section to copy into the configuration, and what
/// was written; notes are left to the caller.
std::string format_aio_sweep(const AioSweepReport& report);

/// {"aio": {...} or null, "directory", "file_system", "drive", "budget_bytes", "bytes_written",
/// "bytes_read", "operation_bytes", "elapsed_s", "points": [{"aio": {...},
/// "read_bytes_per_s": [...], "write_bytes_per_s": [...]}], "sustained":
/// {"first_write_bytes_per_s", "second_write_bytes_per_s", "read_bytes_per_s"}, "notes": [...]};
/// what was not measured is null.
json::object to_json(const AioSweepReport& report);

}  // namespace dstune
