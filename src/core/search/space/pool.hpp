// The candidates that are left of all spaces without those that make no difference, cannot run or
// do not fit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/space.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune {

/// Says what an experiment would do on one rank. A call is local and fast, and make_pool() calls
/// from several threads. Tests give runners of their own.
using DryRunner = std::function<DryRun(const Experiment& experiment, int rank)>;

/// A runner that runs the real step's code dry. @param imitated  as for make_memory_predictor()
DryRunner make_dry_runner(const Device* imitated = nullptr);

/// One configuration to measure.
struct PooledCandidate {
  Candidate candidate;
  Point point;
  /// Names of configurations with the same effect; only the first few of many.
  std::vector<std::string> other_names;
  std::uint64_t same_effect = 0;  ///< how many configurations have the same effect
  /// The ledger and the memory of the group's rank 0; times are 0, and the peak is that of the
  /// worst rank.
  Measured dry;
};

/// How many configurations of one stage are left after each step.
struct StageFunnel {
  int stage = 0;
  std::uint64_t generated = 0;
  /// The numbers of invalid ones, by the sentence that says why.
  std::map<std::string, std::uint64_t> invalid;
  std::uint64_t same_effect = 0;
  std::uint64_t does_not_fit = 0;
  std::uint64_t dominated = 0;

  std::uint64_t valid() const;
  std::uint64_t distinct() const { return valid() - same_effect; }
  std::uint64_t fitting() const { return distinct() - does_not_fit; }
  std::uint64_t left() const { return fitting() - dominated; }
};

/// The possible ends of a configuration.
enum class FateKind { pooled, invalid, same_effect, does_not_fit, dominated };

std::string_view name_of(FateKind kind);

struct Fate {
  FateKind kind = FateKind::pooled;
  std::string reason;  ///< the rule, the missing bytes, or the name of the one with the same effect
};

/// One space of one stage, and what became of its points.
struct SearchedSpace {
  Space space;
  std::vector<std::uint32_t> verdicts;  ///< by the point's index: a place in Pool::verdicts
};

/// What points with the same end have in common.
struct Verdict {
  FateKind kind = FateKind::pooled;
  std::string reason;       ///< for invalid points, and for those that do not fit
  std::string first;        ///< the name of the first point, if it has a step at all
  std::size_t space = 0;    ///< the place of the first point's space in Pool::spaces
  std::uint64_t index = 0;  ///< the first point's index in that space
};

struct Pool {
  std::vector<PooledCandidate> candidates;  ///< in the order of stages, spaces and indices
  std::vector<StageFunnel> funnel;          ///< by stage, in the order of the configuration
  std::vector<SearchedSpace> spaces;
  std::vector<Verdict> verdicts;
  Stores full;  ///< what is too small for those that do not fit

  /// The fate of the point with this index in `spaces[space]`.
  Fate fate(std::size_t space, std::uint64_t index) const;
};

/// Enumerates every space of every stage, checks each configuration, and keeps one of those that a
/// dry run finds to be the same step, if it fits in memory on every rank that is looked at
/// (plan_stages()). The pool's own memory grows by only a few bytes per configuration.
/// @param plans  the plans of config.stages
Pool make_pool(const TuningConfig& config, int group_size, const std::vector<StagePlan>& plans,
               const DryRunner& dry_run);

}  // namespace dstune
