// The search for the "aio" section with which a drive is fastest, in few measurements, and what it
// found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/drive/aio_settings.hpp"

namespace dstune {

enum class AioDirection { read, write };

/// Measures one window. None: no further window can be measured, because the time is up or because
/// of a fault that the measuring side keeps.
/// @returns bytes per second
using AioMeasure = std::function<std::optional<double>(const AioSettings&)>;

struct AioChoice {
  AioSettings best;
  bool is_complete = true;  ///< false: measure() gave none, and `best` is the best until then
  /// Values that could not be told from others by operations of this size, and were not measured:
  /// "queue_depth 128".
  std::vector<std::string> alike;
};

/// Where two settings are within this share, the one that takes less of the machine is kept.
inline constexpr double kAioTie = 0.05;

/// Chooses from the grid of DeepSpeed's own sweep (nvme/perf_run_sweep.py): block_size 1 and 8 MiB,
/// queue_depth 32 and 128, 1, 2, 4 and 8 threads, both values of single_submit and overlap_events,
/// 64 points. Each of six comparisons leaves half of the points out, so that 7 are measured at
/// most. Knobs are decided one after the other, those that matter most first.
///
/// @param operation  bytes of one operation in a window
/// @param rounds     windows of each side of a comparison, >= 1; the sides take turns, and the one
///                   that takes less of the machine is first, then second, and so on
AioChoice halve_aio_grid(const AioMeasure& measure, Bytes operation, int rounds);

/// What was measured of one point; each window's rate in bytes per second, in order.
struct AioPoint {
  AioSettings settings;
  std::vector<double> read;
  std::vector<double> write;
};

/// Long windows with the chosen settings, in bytes per second. 0: not measured.
struct AioSustained {
  double first_write = 0;
  double second_write = 0;  ///< right after it: slower once a cache of the drive is full
  double read = 0;

  /// Whether the second window shows that the drive writes more slowly in the long run.
  bool slows_down() const { return second_write > 0 && second_write < 0.75 * first_write; }
};

/// What a sweep found, and what it did to the drive.
struct AioSweepReport {
  std::string directory;
  std::string file_system;  ///< "ext4"
  std::string drive;        ///< "nvme0n1 (Samsung SSD 990 PRO)", or "" if not known
  Bytes budget = 0;         ///< the most that it was allowed to write
  Bytes written = 0;
  Bytes read = 0;
  Bytes operation = 0;  ///< bytes of one operation
  Seconds elapsed = 0;
  std::vector<AioPoint> points;     ///< in the order in which they were first measured
  std::optional<AioSettings> best;  ///< for a step that reads and writes as much; none: not found
  AioSustained sustained;
  std::vector<std::string> notes;  ///< what the figures must be read with
};

/// The mean of some windows' rates that took equal bytes each: of all bytes in all of the time.
/// 0 if there are none.
double mean_rate(const std::vector<double>& rates);

/// The settings that take the least time to read and to write as many bytes: of `candidates` that
/// are among `points` and were measured in both directions, the first one, unless a later one is
/// better by more than a tie. None if there is no such candidate.
std::optional<AioSettings> best_for_both(const std::vector<AioPoint>& points,
                                         const std::vector<AioSettings>& candidates);

}  // namespace dstune
