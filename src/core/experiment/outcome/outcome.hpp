// The possible outcomes of one experiment, which are all that a worker reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/statistics.hpp"
#include "core/base/units.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/memory/host_memory.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/device/rates/device_peaks.hpp"
#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/outcome/core_use.hpp"
#include "core/experiment/outcome/device_use.hpp"
#include "core/experiment/outcome/machine_check.hpp"
#include "core/experiment/outcome/varying_steps.hpp"

namespace dstune {

/// The experiment ran. Times are wall times of whole optimizer steps (all micro-steps and the
/// optimizer), in each step that of the slowest rank; memory is that of the rank with the largest
/// peak.
struct Measured {
  int steps = 0;      ///< measured optimizer steps
  Summary step_time;  ///< seconds per optimizer step, with all of its micro-steps
  /// This and the next three: medians over steps, seconds per optimizer step.
  Seconds forward_time = 0;
  Seconds backward_time = 0;        ///< includes gradient communication inside backward
  Seconds optimizer_time = 0;       ///< engine.step(): reduction leftovers, norm, Adam, gather
  Seconds communication_time = 0;   ///< the time inside collectives, anywhere in the step
  double samples_per_s = 0;         ///< train_batch_size / typical_step_time()
  double tokens_per_s = 0;          ///< padding does not count
  double flops_per_s_per_rank = 0;  ///< model FLOPs, training_flops()
  /// How many micro-steps of each step ran; the others were computed from them. 0: all ran.
  int micro_steps_run = 0;
  /// The mean over ranks and over the micro-steps that ran, of the first step ever run.
  double first_loss = 0;
  double last_loss = 0;
  PeakMemory peak_memory;
  /// Of the rank's tensors in its host's memory; nothing unless something is offloaded.
  PeakHostMemory peak_host_memory = {};
  Ledger ledger;             ///< the account of the last measured step on the group's rank 0
  Seconds setup_time = 0;    ///< allocation and initialisation, the slowest rank's
  Seconds warmup_time = 0;   ///< wall time of the warm-up steps on the group's rank 0
  Seconds measure_time = 0;  ///< sum of the measured steps on the group's rank 0
  /// By group rank: the median over steps of the rank's own work, without its waits in collectives.
  /// Empty in measurements of earlier versions.
  std::vector<Seconds> compute_times = {};
  /// By group rank. Empty where time is virtual, and in measurements of earlier versions.
  std::vector<CoreUse> core_use = {};
  /// None where no device reports its use, and in measurements of earlier versions.
  std::optional<DeviceUse> device_use = std::nullopt;
  /// The network that carried the collectives between hosts, as their library names it ("IB",
  /// "Socket"); "" if the library did not say.
  std::string network = {};
  /// The peaks of the slowest device of the group; none where they are not measured.
  std::optional<DevicePeaks> device_peaks = std::nullopt;
  /// The rates of an experiment with measures_machine, which has no other measurements; none for
  /// all other experiments.
  std::optional<MachineRates> machine_rates = std::nullopt;
  /// What a preflight found, which has no other measurements; none for all other experiments.
  std::optional<MachineCheck> machine_check = std::nullopt;
  /// The steps where lengths vary from step to step; none where they do not.
  std::optional<VaryingSteps> varying = std::nullopt;
  /// The steps that took longer than all others by a gap, of steps that should be alike; none where
  /// they look alike, and in measurements of earlier versions.
  std::optional<SlowPart> slow_steps = std::nullopt;
};

/// The time that one step takes: the median, or the mean of steps that vary by nature.
Seconds typical_step_time(const Measured& measured);

/// The standard error of typical_step_time(), relative to it, by the spread and the correlation of
/// the steps of this one run. It is the least that another run would differ by, as it knows nothing
/// of what changes from run to run.
double relative_error(const Measured& measured);
/// The root mean square of those of several; 0 if there are none.
double relative_error(const std::vector<const Measured*>& runs);

/// Half of the interval of 95 % about typical_step_time(), relative to it, by the steps of this one
/// run alone (relative_error(), Student's t). It covers the median of endlessly many steps of the
/// same run, not that of another run. None if fewer than two steps were measured.
std::optional<double> relative_interval(const Measured& measured);

/// The experiment does not fit. The numbers are those of the first rank that could not allocate.
/// For a rank that the system ended for want of memory they are the memory that it shared with
/// others, which was full.
struct OutOfMemory {
  int rank = 0;  ///< rank in MPI_COMM_WORLD if the experiment ran, else in the group
  MemoryCategory category = MemoryCategory::temporaries;
  Bytes requested = 0;  ///< 0: not known
  Bytes in_use = 0;     ///< the whole process's use where `requested` is not known
  Bytes limit = 0;
  Bytes reserved = 0;        ///< see OutOfMemoryError
  std::string refusal = {};  ///< what the system said or did although the limit was not reached
  Tier tier = Tier::device;  ///< the memory that was short

  bool operator==(const OutOfMemory&) const = default;
};

/// True if memory was short although the limit was not reached: the machine is at fault, and
/// another try may end otherwise.
bool is_machines(const OutOfMemory& fault);

enum class FailureKind {
  error,        ///< an exception in the step
  not_finite,   ///< the loss became NaN or infinite
  timeout,      ///< experiment_timeout passed
  worker_lost,  ///< a rank of the group died
  quarantined,  ///< the experiment was running in two crashes of the whole run
  device_lost,  ///< a rank's device can do nothing any more, and the rank gets no more work
  wrong_sums,   ///< a collective of known values gave wrong results, which ends the run
};

/// The experiment failed; `reason` says why in one line.
struct Failed {
  FailureKind kind = FailureKind::error;
  std::string reason;

  bool operator==(const Failed&) const = default;
};

/// The experiment was not run, because the backend cannot do what the configuration asks for (e.g.
/// a knob that it does not model).
struct Skipped {
  std::string reason;

  bool operator==(const Skipped&) const = default;
};

using Outcome = std::variant<Measured, OutOfMemory, Failed, Skipped>;

/// True if another try, for which the user must ask, may end otherwise: after a failure, and where
/// the machine had too little memory (is_machines()). All other outcomes are final.
bool may_be_tried_again(const Outcome& outcome);

/// {"status": "measured" | "out_of_memory" | "failed" | "skipped", ...}, units in the keys.
json::object to_json(const Outcome& outcome);
/// Inverse of to_json, exact. @throws std::invalid_argument if `object` is no outcome
Outcome outcome_from_json(const json::object& object);

/// "412.6 ms +-0.8% (95 %, 9 steps), 171.3 GFLOP/s, peak 61.40 GiB" or the reason why there are no
/// numbers; one line.
std::string describe(const Outcome& outcome);

/// The peak for people: "2.33 GiB" or, where memory was in flight or segments were reserved, "3.00
/// GiB allocated, 4.00 GiB active, 7.00 GiB reserved". Of a dry run, whose step took no time, it is
/// "at most 1.00 GiB more in flight" instead of what was active.
/// @param where  follows the bytes that were allocated: " in backward"
std::string describe_peak(const Measured& measured, const std::string& where = "");

/// "41 % of the measured GEMM peak (612.0 TFLOP/s)"; "" if no peak or no time was measured.
std::string share_of_peak(const Measured& measured);

}  // namespace dstune
