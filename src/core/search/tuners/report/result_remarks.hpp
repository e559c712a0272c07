// The remarks that a reader of the result needs: whose host overhead it has, which order depends on
// it, which arithmetic was used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {

/// "z1_gas1_tmbspg4 is the optimum: as fast as z3_gas1_tmbspg4 within noise, and a smaller stage"
/// (choice_reason()); "" if it is the fastest row.
std::string choice_remark(const std::vector<Record>& records, Metric metric, const Record& best);

/// How a training program switches on the activation checkpointing of `best`, or that it must leave
/// it off; "" where checkpointing was not tuned.
std::string checkpointing_remark(const std::vector<Record>& records, const Record& best);

/// A remark that the CPU backend computes bf16 and fp16 in fp32; "" if no experiment was measured
/// with them there.
std::string arithmetic_remark(const std::vector<Record>& records);

/// What of the optimum's step is waited since torch computes more slowly, by the profile, or that
/// none is for products; "" where nothing is, and the profile has no rate of them, or no CPU
/// multiplied.
std::string library_remark(const Record& best);

/// How many threads an offloaded optimizer had, what a launcher must be told to give it as many,
/// and how much longer the update takes with one, if `host` was measured; on a CPU what its copies
/// do not say, in virtual time that all of it is guessed; "" where nothing is offloaded.
std::string offload_remark(const Record& best, const std::optional<HostRates>& host = {});

/// How much more accumulation would save of the time that the host works on what is offloaded; ""
/// where that is less than a tenth of the step.
std::string accumulation_remark(const Record& best);

/// "while they computed, the ranks had 31 % of a core (median): ..."; "" if they had three quarters
/// or more, or where that is not known.
std::string cores_remark(const std::vector<Record>& records);

/// "some steps took much longer than the others, as if something else ran at times:
/// z1_gas1_tmbspg4 (two modes: 4 of 9 steps took 20 % longer)", five of the experiments at most; ""
/// if no experiment has slow_steps.
std::string slow_steps_remark(const std::vector<Record>& records);

/// What of PyTorch's kernels others stood in for, and what that costs; "" if none did.
std::string stand_in_remark(const Record& best);

/// "the GPU was held back in 3 of 20 experiments (most in z3_gas1_tmbspg4, power cap: SM clock 1410
/// of 1980 MHz (71 %), 83 C, 612 W): their times are not its best"; "" if it never was.
std::string throttle_remark(const std::vector<Record>& records);

/// "2 other processes used the GPU in 3 of 20 experiments: their times are not its best"; "" if
/// none did.
std::string sharing_remark(const std::vector<Record>& records);

/// "z1_gas1_tmbspg4 runs at 41 % of the measured GEMM peak (612.0 TFLOP/s)"; "" where no peak was
/// measured.
std::string peak_remark(const std::vector<Record>& records, const Record& best);

/// All remarks, a line each: the host overhead in force, the ties because of it (profile_ties.hpp),
/// the remarks above where they apply, and the known faults of the optimum's settings
/// (space/known_faults.hpp).
/// @param records  records of one run, which has one host overhead; if there are none, there are no
///                 remarks
/// @param host     its measured rates
std::vector<std::string> result_remarks(const std::vector<Record>& records, Metric metric,
                                        const std::optional<Record>& best,
                                        const std::optional<HostRates>& host = {});

/// All remarks on a run's result, with the ranks that lost their device and those that were slow.
std::vector<std::string> result_remarks(const TuningResult& result, Metric metric);

}  // namespace dstune
