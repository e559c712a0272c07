// Measures a drive with the requests that DeepSpeed would make, and spares it (docs/nvme.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/units.hpp"
#include "core/device/rates/aio_sweep.hpp"
#include "kernels/host/nvme/aio_calls.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

struct SweepOptions {
  std::string directory;
  Bytes budget = Bytes{4} << 30U;  ///< the most that may be written, at least 256 MiB
  Seconds limit = 30;              ///< the last operation may end after it
};

/// How the budget is used, in windows of equal size.
struct SweepPlan {
  Bytes operation = 0;  ///< bytes of one operation
  int per_window = 1;   ///< operations
  Bytes window() const { return operation * static_cast<Bytes>(per_window); }

  static constexpr int kFileWindows = 5;  ///< the file's size; a long window writes all of it
  static constexpr int kReadRounds = 2;   ///< of a comparison; reading wears no drive
  static constexpr int kWriteRounds = 1;
  /// What is written at most: the file, 6 comparisons, DeepSpeed's defaults, the best reader, and
  /// two long windows.
  static constexpr int kWrittenWindows = 3 * kFileWindows + 6 * 2 * kWriteRounds + 2;
};

/// The windows for a drive that was seen to write so many bytes per second: as large as the budget
/// allows, where the drive does all of it in the time.
SweepPlan plan_sweep(Bytes budget, Seconds limit, double bytes_per_s);

/// The outside of a sweep; tests have others.
struct SweepOutside {
  std::function<std::unique_ptr<AioCalls>()> make_calls = make_system_aio_calls;
  std::function<Seconds()> now = {};  ///< empty: a clock that only goes forward
};

struct SweepResult {
  AioSweepReport report;           ///< of what was done until then, if there is a fault
  std::optional<FileError> fault;  ///< of the drive: what it said, or that it kept wrong bytes
};

/// Writes random bytes to a file without a name in the directory, at most the budget, reads them,
/// and looks whether they are the same. Nothing else is written anywhere.
/// @throws ConfigError  if the directory is none where a sweep may write: before anything is
///                      written
SweepResult sweep_drive(const SweepOptions& options, const SweepOutside& outside = {});

}  // namespace dstune::host
