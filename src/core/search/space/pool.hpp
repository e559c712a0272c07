// What is left of all spaces when what cannot matter, run or fit is thrown away.
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

/// What an experiment would do on one rank. Local and fast. Tests give their own.
using DryRunner = std::function<DryRun(const Experiment& experiment, int rank)>;

/// The dry run of the real step's code; as make_memory_predictor().
DryRunner make_dry_runner(const Device* imitated = nullptr);

/// One configuration to measure.
struct PooledCandidate {
  Candidate candidate;
  Point point;
  std::vector<std::string> other_names;  ///< with the same effect; of many the first few
  std::uint64_t same_effect = 0;         ///< how many there are
  Measured
      dry;  ///< group rank 0: ledger and memory; times are 0. The peak is that of the worst rank
};

/// How many configurations of one stage are left after each step.
struct StageFunnel {
  int stage = 0;
  std::uint64_t generated = 0;
  std::map<std::string, std::uint64_t> invalid;  ///< by the sentence that says why
  std::uint64_t same_effect = 0;
  std::uint64_t does_not_fit = 0;
  std::uint64_t dominated = 0;

  std::uint64_t valid() const;
  std::uint64_t distinct() const { return valid() - same_effect; }
  std::uint64_t fitting() const { return distinct() - does_not_fit; }
  std::uint64_t left() const { return fitting() - dominated; }
};

/// What becomes of a configuration.
enum class FateKind { pooled, invalid, same_effect, does_not_fit, dominated };

std::string_view name_of(FateKind kind);

struct Fate {
  FateKind kind = FateKind::pooled;
  std::string reason;  ///< the rule, the bytes that are missing, or the name it is the same as
};

/// One space of one stage, and what became of its points.
struct SearchedSpace {
  Space space;
  std::vector<std::uint32_t> verdicts;  ///< by index: a place in Pool::verdicts
};

/// What points have in common that end alike.
struct Verdict {
  FateKind kind = FateKind::pooled;
  std::string reason;       ///< of invalid ones, and of those that do not fit
  std::string first;        ///< name of the first point, where there is a step at all
  std::size_t space = 0;    ///< of the first point: place in Pool::spaces
  std::uint64_t index = 0;  ///< and its index there
};

struct Pool {
  std::vector<PooledCandidate> candidates;  ///< in the order of stages, spaces and indices
  std::vector<StageFunnel> funnel;          ///< by stage, in the order of the configuration
  std::vector<SearchedSpace> spaces;
  std::vector<Verdict> verdicts;

  /// What became of a point of `spaces[space]`.
  Fate fate(std::size_t space, std::uint64_t index) const;
};

/// Enumerates every space of every stage, checks each configuration, and keeps one of those that a
/// dry run finds to be the same step, if it fits: in memory on every rank that is looked at
/// (plan_stages). Memory does not grow with the number of configurations but for a few bytes each.
/// @param plans  of config.stages
Pool make_pool(const TuningConfig& config, int group_size, const std::vector<StagePlan>& plans,
               const DryRunner& dry_run);

}  // namespace dstune
