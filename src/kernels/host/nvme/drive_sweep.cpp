#include "kernels/host/nvme/drive_sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/host/nvme/drive.hpp"
#include "kernels/host/nvme/swept_file.hpp"

namespace dstune::host {
namespace {

constexpr Bytes kUnit = Bytes{8} << 20U;  ///< the largest block; sizes are multiples of it
constexpr Bytes kMostOperation = Bytes{160} << 20U;
constexpr Bytes kProbe = kUnit;

/// Reads are over by this share of the time, and comparisons of writes by that one.
constexpr double kReadsUntil = 0.45;
constexpr double kWritesUntil = 0.7;

Seconds steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One sweep, from the first byte to the report.
class Sweep {
 public:
  Sweep(const SweepOptions& options, const SweepOutside& outside, const DriveFacts& facts)
      : options_(options), outside_(outside), begin_(now()) {
    AioSweepReport& report = result_.report;
    report.directory = options.directory;
    report.file_system = facts.file_system;
    report.drive = facts.drive;
    report.budget = options.budget;
    if (facts.file_system == "zfs" || facts.file_system == "btrfs") {
      note(concat("on ", facts.file_system,
                  " direct I/O may go through the system's cache: these may be rates of memory"));
    }
    if (facts.is_rotational.value_or(false)) {
      note(
          "the system says that this drive rotates (or cannot tell, as with a virtual one); NVMe "
          "offload is of no use on a disk");
    }
    if (facts.logical_block > 1024) {
      note(concat("the drive has logical blocks of ", facts.logical_block,
                  " bytes: DeepSpeed's tensors must be multiples of that times "
                  "intra_op_parallelism, or its reads and writes fail with EINVAL"));
    }
  }

  SweepResult run(ScratchFile&& scratch) {
    file_.emplace(std::move(scratch), std::random_device{}());
    if (begin_file()) {
      measure_directions();
      confirm();
    }
    if (result_.fault) result_.report.best.reset();
    result_.report.written = file_->written();
    result_.report.read = file_->read();
    result_.report.elapsed = now() - begin_;
    return std::move(result_);
  }

 private:
  Seconds now() const { return outside_.now ? outside_.now() : steady_seconds(); }

  void note(std::string text) { result_.report.notes.push_back(std::move(text)); }

  bool fail(FileError&& error) {
    result_.fault.emplace(std::move(error));
    return false;
  }

  /// Measures how fast the drive is at all, and fills the file, as DeepSpeed's defaults would.
  bool begin_file() {
    if (auto error = file_->make_buffers(kProbe, 1)) return fail(std::move(*error));
    const auto probe = window(AioDirection::write, kDefaults, kProbe);
    if (!probe) return false;
    plan_ = plan_sweep(options_.budget, options_.limit, *probe);
    result_.report.operation = plan_.operation;
    if (auto error =
            file_->make_buffers(plan_.operation, SweepPlan::kFileWindows * plan_.per_window))
      return fail(std::move(*error));
    if (!file_->why_not_locked().empty()) {
      note(concat("the buffers are not locked in memory, as DeepSpeed's must be: ",
                  file_->why_not_locked()));
    }
    deadline_ = kReadsUntil;
    const bool is_filled = long_window(AioDirection::write, kDefaults) > 0;
    if (!is_filled && !result_.fault) note("the time was up before anything could be compared");
    return is_filled;
  }

  void measure_directions() {
    deadline_ = kReadsUntil;
    read_best_ = compare(AioDirection::read, SweepPlan::kReadRounds);
    measure(AioDirection::read, kDefaults);
    deadline_ = kWritesUntil;
    write_best_ = compare(AioDirection::write, SweepPlan::kWriteRounds);
    measure(AioDirection::write, kDefaults);
  }

  AioSettings compare(AioDirection direction, int rounds) {
    if (result_.fault) return kDefaults;
    const auto choice =
        halve_aio_grid([&](const AioSettings& settings) { return measure(direction, settings); },
                       plan_.operation, rounds);
    const char* name = direction == AioDirection::read ? "reads" : "writes";
    if (!choice.is_complete && !result_.fault) {
      note(concat("the time was up before all comparisons of ", name, " were through"));
    }
    if (!choice.alike.empty()) {
      note(concat("of ", name, ", not measured: ", join(choice.alike, ", "), ", as operations of ",
                  format_bytes(plan_.operation), " would not differ"));
    }
    return choice.best;
  }

  /// Chooses, measuring each direction's best in the other one, and writes and reads the whole file
  /// with it.
  void confirm() {
    deadline_ = 1;
    for (const AioSettings& settings : {AioSettings{kDefaults}, read_best_, write_best_}) {
      measure_if_missing(AioDirection::read, settings);
      measure_if_missing(AioDirection::write, settings);
    }
    AioSweepReport& report = result_.report;
    report.best = best_for_both(report.points, {kDefaults, read_best_, write_best_});
    if (!report.best || result_.fault) return;
    report.sustained.first_write = long_window(AioDirection::write, *report.best);
    report.sustained.second_write = long_window(AioDirection::write, *report.best);
    report.sustained.read = long_window(AioDirection::read, *report.best);
    if (report.sustained.read == 0 && !result_.fault) {
      note("the time was up before all long windows were through");
    }
    if (report.sustained.slows_down()) {
      note(
          "the second long write is slower than the first: a cache of the drive was full, and "
          "training, which keeps writing, sees the second rate or less");
    }
  }

  AioPoint& point_of(const AioSettings& settings) {
    auto& points = result_.report.points;
    for (AioPoint& point : points) {
      if (point.settings == settings) return point;
    }
    points.push_back({settings, {}, {}});
    return points.back();
  }

  static std::vector<double>& rates_of(AioPoint& point, AioDirection direction) {
    return direction == AioDirection::read ? point.read : point.write;
  }

  void measure_if_missing(AioDirection direction, const AioSettings& settings) {
    if (rates_of(point_of(settings), direction).empty()) measure(direction, settings);
  }

  std::optional<double> measure(AioDirection direction, const AioSettings& settings) {
    const auto rate = window(direction, settings, plan_.window());
    if (rate) rates_of(point_of(settings), direction).push_back(*rate);
    return rate;
  }

  /// @returns 0 if the time was up, or there was a fault
  double long_window(AioDirection direction, const AioSettings& settings) {
    file_->rewind();
    return window(direction, settings, SweepPlan::kFileWindows * plan_.window()).value_or(0);
  }

  /// Both sides of a comparison take turns, and to make a queue and to give it back takes longer
  /// than a window. @returns null if there was a fault
  AioEngine* engine_of(const AioSettings& settings) {
    for (const auto& engine : engines_) {
      if (std::get<0>(engine)->settings() == settings) return std::get<0>(engine).get();
    }
    if (engines_.size() >= kMostEngines) engines_.erase(engines_.begin());
    engines_.push_back(AioEngine::make(settings, outside_.make_calls()));
    auto* const error = std::get_if<FileError>(&engines_.back());
    if (error == nullptr) return std::get<0>(engines_.back()).get();
    fail(std::move(*error));
    return nullptr;
  }

  /// Reads or writes so many bytes, operation by operation, and times these alone: what was read is
  /// looked at between them.
  std::optional<double> window(AioDirection direction, const AioSettings& settings, Bytes bytes) {
    if (result_.fault) return std::nullopt;
    AioEngine* const engine = engine_of(settings);
    if (engine == nullptr) return std::nullopt;
    Seconds time = 0;
    for (Bytes done = 0; done < bytes; done += file_->operation()) {
      if (is_late(direction)) return std::nullopt;
      file_->prepare(direction);
      const Seconds from = now();
      auto error = file_->run(direction, *engine);
      const Seconds took = now() - from;
      time += took;
      last_[direction == AioDirection::read ? 0 : 1] = took;
      if (!error) error = file_->finish(direction);
      if (!error) continue;
      fail(std::move(*error));
      return std::nullopt;
    }
    return static_cast<double>(bytes) / std::max(time, 1e-9);
  }

  /// Whether an operation that takes as long as the last one would end too late.
  bool is_late(AioDirection direction) const {
    const Seconds spent = now() - begin_;
    return spent + last_[direction == AioDirection::read ? 0 : 1] > deadline_ * options_.limit;
  }

  static constexpr AioSettings kDefaults{};
  static constexpr std::size_t kMostEngines = 3;

  const SweepOptions& options_;
  const SweepOutside& outside_;
  Seconds begin_;
  double deadline_ = 1;   ///< of what is done now, as a share of the limit
  Seconds last_[2] = {};  ///< that the last operation took, of reads and of writes
  SweepPlan plan_;
  std::optional<SweptFile> file_;
  std::vector<OrFileError<std::unique_ptr<AioEngine>>>
      engines_;  ///< the last ones; no use after a fault
  AioSettings read_best_;
  AioSettings write_best_;
  SweepResult result_;
};

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError("command line", {{"--nvme-sweep", why}});
}

}  // namespace

SweepPlan plan_sweep(Bytes budget, Seconds limit, double bytes_per_s) {
  // All windows, written and read, are some 70; half of the time is for the rest.
  constexpr double kWindowsInTime = 140;
  const double in_time = limit * bytes_per_s / kWindowsInTime;
  const Bytes allowed = (budget - kProbe) / SweepPlan::kWrittenWindows;
  const Bytes window =
      in_time < static_cast<double>(allowed) ? static_cast<Bytes>(in_time) : allowed;
  const Bytes operations = (window + kMostOperation - 1) / kMostOperation;
  SweepPlan plan;
  plan.per_window = std::max(1, static_cast<int>(operations));
  const Bytes each = window / static_cast<Bytes>(plan.per_window);
  plan.operation = std::max(kUnit, each / kUnit * kUnit);
  return plan;
}

SweepResult sweep_drive(const SweepOptions& options, const SweepOutside& outside) {
  auto facts = look_at_drive(options.directory);
  if (const auto* const error = std::get_if<FileError>(&facts)) {
    refuse(to_text(*error));
  }
  const auto& found = std::get<DriveFacts>(facts);
  const std::string why = why_no_sweep(found, options.budget);
  if (!why.empty()) refuse(concat(options.directory, " ", why));
  auto scratch = ScratchFile::make(options.directory);
  if (const auto* const error = std::get_if<FileError>(&scratch)) refuse(to_text(*error));
  return Sweep(options, outside, found).run(std::move(std::get<ScratchFile>(scratch)));
}

}  // namespace dstune::host
