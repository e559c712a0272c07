// The report of one rank, and how the group's reports become one outcome.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/training_step.hpp"

namespace dstune {

struct RankReport {
  std::vector<double> total;  ///< seconds, one per measured step; as in those that follow:
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> optimizer;
  std::vector<double> communication;
  std::vector<double> compute;  ///< what is left of `total` without waiting for the other ranks
  std::string not_finite;       ///< "rank 2: the loss became nan in step 3", or ""
  Measured own;                 ///< losses, peak memory, collectives, set-up and warm-up time
  std::vector<double> real_tokens = {};  ///< one per step; 0 unless lengths vary
  std::vector<double> padded_tokens = {};
  std::vector<double> flops = {};

  void add(const StepReport& step, Seconds communication_time, Seconds exposed_time);
};

std::string to_text(const RankReport& report);
/// Inverse of to_text.
/// @throws std::invalid_argument  if `text` is no report
RankReport rank_report_from_text(const std::string& text);

/// The outcome of an experiment from the reports of its ranks, ordered by rank; there is at least
/// one.
Outcome merge_reports(const std::vector<RankReport>& reports, const Experiment& experiment,
                      const StepConfig& config);

}  // namespace dstune
