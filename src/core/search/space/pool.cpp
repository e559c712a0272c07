#include "core/search/space/pool.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/parallel.hpp"
#include "core/base/progress_line.hpp"
#include "core/base/text.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/space/effect.hpp"
#include "core/search/space/leanest.hpp"
#include "core/search/space/normal_form.hpp"
#include "core/search/space/validity.hpp"
#include "core/train/dry_run_memory.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

constexpr std::size_t kMostOtherNames = 8;

// Candidates with other sequence lengths are not compared: shorter sequences need less of
// everything, and do less work.
bool are_comparable(const PooledCandidate& a, const PooledCandidate& b) {
  return a.point == b.point && tuned_sequence_length(a.candidate.ds_config.json()) ==
                                   tuned_sequence_length(b.candidate.ds_config.json());
}

/// Makes the pool from all points of all spaces.
class PoolMaker {
 public:
  PoolMaker(const TuningConfig& config, int group_size, const DryRunner& dry_run)
      : config_(config),
        group_size_(group_size),
        dry_run_(dry_run),
        parameters_(make_model_parameters(config.settings.model)),
        form_(parameters_, group_size),
        validity_(config_, parameters_, group_size) {}

  void add_stage(const StagePlan& plan) {
    pool_.funnel.push_back({});
    pool_.funnel.back().stage = plan.stage;
    const auto points =
        pool_points(config_, group_size_, with_leanest(config_, group_size_, plan, dry_run_));
    for (Space& space : make_spaces(config_, group_size_, plan.stage, points)) {
      pool_.spaces.push_back({std::move(space), {}});
      SearchedSpace& searched = pool_.spaces.back();
      sort_into_kinds(searched);
      walk_new_kinds(searched.space);
      for (std::uint64_t i = 0; i < searched.space.size(); ++i) {
        searched.verdicts[i] = verdict_of(searched.verdicts[i], searched.space, i);
      }
    }
  }

  Pool take() {
    if (config_.space.prune_dominated) prune_dominated();
    return std::move(pool_);
  }

 private:
  StageFunnel& funnel() { return pool_.funnel.back(); }

  /// Points that must have the same verdict: they have the same fault or the same normal form.
  struct Kind {
    std::uint64_t first = 0;     ///< the index of the first one in its space
    std::string fault;           ///< "" if it is valid, as far as is known without a dry run
    std::optional<Effect> walk;  ///< only until there is a verdict
    std::optional<std::uint32_t> verdict;
  };

  // The kinds of the points stand where their verdicts will stand.
  void sort_into_kinds(SearchedSpace& searched) {
    const Space& space = searched.space;
    searched.verdicts.reserve(space.size());
    for (std::uint64_t i = 0; i < space.size(); ++i) {
      const std::uint64_t first = space.first_alike(i);
      searched.verdicts.push_back(first == i ? kind_of(space, i) : searched.verdicts[first]);
    }
  }

  std::uint32_t kind_of(const Space& space, std::uint64_t index) {
    const DeepSpeedConfig config = space.config(index);
    if (const auto fault = validity_.fault(config))
      return kind_in(by_fault_, *fault, index, *fault);
    const std::int64_t length = tuned_sequence_length(config.json()).value_or(0);
    return kind_in(by_form_, concat(form_.key(config.step()), length), index, "");
  }

  std::uint32_t kind_in(std::unordered_map<std::string, std::uint32_t>& known,
                        const std::string& key, std::uint64_t index, const std::string& fault) {
    const auto [own, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back({index, fault, {}, {}});
    return own->second;
  }

  // A device that is asked for its scratch should be asked by this thread, which has asked it
  // before: so this thread walks the first step of each micro-batch.
  void walk_new_kinds(const Space& space) {
    std::vector<Kind*> others;
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (; walked_ < kinds_.size(); ++walked_) {
      Kind& kind = kinds_[walked_];
      if (!kind.fault.empty()) continue;
      const DeepSpeedConfig config = space.config(kind.first);
      const std::int64_t length = tuned_sequence_length(config.json()).value_or(0);
      if (seen.emplace(config.step().micro_batch, length).second) {
        kind.walk = effect_of(config);
      } else {
        others.push_back(&kind);
      }
    }
    ProgressLine progress(concat("stage ", funnel().stage, ": dry runs"), others.size());
    for_each_in_parallel(others.size(), [&](std::size_t i) {
      others[i]->walk = effect_of(space.config(others[i]->first));
      progress.advance();
    });
  }

  Effect effect_of(const DeepSpeedConfig& config) const {
    return find_effect(make_experiment(config_, group_size_, {"", config}),
                       ranks_that_differ(config.step(), parameters_, group_size_), dry_run_);
  }

  std::uint32_t verdict_of(std::uint32_t number, const Space& space, std::uint64_t index) {
    ++funnel().generated;
    Kind& kind = kinds_[number];
    if (kind.verdict) {
      repeat(*kind.verdict, space, index);
    } else {
      kind.verdict = kind.fault.empty() ? distinct(*std::exchange(kind.walk, {}), space, index)
                                        : invalid(kind.fault);
    }
    return *kind.verdict;
  }

  std::uint32_t invalid(const std::string& reason) {
    ++funnel().invalid[reason];
    const auto [known, is_new] = by_reason_.try_emplace(reason, 0);
    if (is_new) known->second = add({FateKind::invalid, reason, {}});
    return known->second;
  }

  std::uint32_t add(Verdict verdict) {
    pool_.verdicts.push_back(std::move(verdict));
    candidate_of_.push_back(kNone);
    return static_cast<std::uint32_t>(pool_.verdicts.size() - 1);
  }

  // Counts another point with a known verdict; it is invalid if the first point with it was.
  void repeat(std::uint32_t known, const Space& space, std::uint64_t index) {
    const Verdict& verdict = pool_.verdicts[known];
    if (verdict.kind == FateKind::invalid) {
      ++funnel().invalid[verdict.reason];
      return;
    }
    ++funnel().same_effect;
    if (candidate_of_[known] == kNone) return;
    PooledCandidate& candidate = pool_.candidates[candidate_of_[known]];
    ++candidate.same_effect;
    if (candidate.other_names.size() < kMostOtherNames) {
      candidate.other_names.push_back(space.name(index));
    }
  }

  std::uint32_t distinct(Effect effect, const Space& space, std::uint64_t index) {
    if (!effect.skipped.empty()) return invalid(effect.skipped);
    const auto [known, is_new] = by_effect_.try_emplace(effect.number, 0);
    if (!is_new) {
      repeat(known->second, space, index);
      return known->second;
    }
    Candidate candidate = space.at(index);
    candidate.name = unused_name(candidate);
    known->second = add({effect.fits ? FateKind::pooled : FateKind::does_not_fit, effect.shortage,
                         candidate.name, pool_.spaces.size() - 1, index});
    if (!effect.fits) {
      pool_.full |= effect.full;
      ++funnel().does_not_fit;
      return known->second;
    }
    candidate_of_.back() = pool_.candidates.size();
    pool_.candidates.push_back(
        {std::move(candidate), space.point(index), {}, 0, std::move(effect.dry)});
    return known->second;
  }

  // Another space may have used the name already.
  std::string unused_name(const Candidate& candidate) {
    if (names_.insert(candidate.name).second) return candidate.name;
    std::string name = with_number(candidate.name, candidate.ds_config.json());
    names_.insert(name);
    return name;
  }

  void prune_dominated() {
    std::vector<PooledCandidate> left;
    std::vector<std::size_t> verdict_of(pool_.candidates.size());
    for (std::size_t i = 0; i < candidate_of_.size(); ++i) {
      if (candidate_of_[i] != kNone) verdict_of[candidate_of_[i]] = i;
    }
    for (std::size_t i = 0; i < pool_.candidates.size(); ++i) {
      const PooledCandidate& candidate = pool_.candidates[i];
      const auto better = std::find_if(
          pool_.candidates.begin(), pool_.candidates.end(), [&](const PooledCandidate& other) {
            return are_comparable(other, candidate) && is_dominated(candidate.dry, other.dry);
          });
      if (better == pool_.candidates.end()) {
        left.push_back(candidate);
        continue;
      }
      Verdict& verdict = pool_.verdicts[verdict_of[i]];
      verdict.kind = FateKind::dominated;
      verdict.reason = concat("needs nothing less than ", better->candidate.name);
      const auto funnel = std::find_if(
          pool_.funnel.begin(), pool_.funnel.end(),
          [&](const StageFunnel& stage) { return stage.stage == candidate.point.stage; });
      ++funnel->dominated;
    }
    pool_.candidates = std::move(left);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const TuningConfig& config_;
  int group_size_;
  const DryRunner& dry_run_;
  ModelParameters parameters_;
  NormalForm form_;
  Validity validity_;
  Pool pool_;
  std::vector<Kind> kinds_;
  std::size_t walked_ = 0;                                   // of kinds_
  std::unordered_map<std::string, std::uint32_t> by_form_;   // kinds
  std::unordered_map<std::string, std::uint32_t> by_fault_;  // kinds
  std::unordered_map<std::uint64_t, std::uint32_t> by_effect_;
  std::unordered_map<std::string, std::uint32_t> by_reason_;
  std::vector<std::size_t> candidate_of_;  // by verdict
  std::set<std::string> names_;
};

}  // namespace

DryRunner make_dry_runner(const Device* imitated) {
  return
      [imitated, known = std::make_shared<DryRunMemory>()](const Experiment& experiment, int rank) {
        return dry_run(experiment, rank, imitated, known.get());
      };
}

std::uint64_t StageFunnel::valid() const {
  return std::accumulate(invalid.begin(), invalid.end(), generated,
                         [](std::uint64_t left, const auto& rule) { return left - rule.second; });
}

std::string_view name_of(FateKind kind) {
  switch (kind) {
    case FateKind::pooled:
      return "to be tried";
    case FateKind::invalid:
      return "invalid";
    case FateKind::same_effect:
      return "same effect";
    case FateKind::does_not_fit:
      return "does not fit";
    case FateKind::dominated:
      break;
  }
  return "dominated";
}

Fate Pool::fate(std::size_t space, std::uint64_t index) const {
  const Verdict& verdict = verdicts[spaces[space].verdicts[index]];
  const bool is_first = verdict.space == space && verdict.index == index;
  if (verdict.kind == FateKind::invalid || is_first) return {verdict.kind, verdict.reason};
  return {FateKind::same_effect, verdict.first};
}

Pool make_pool(const TuningConfig& config, int group_size, const std::vector<StagePlan>& plans,
               const DryRunner& dry_run) {
  PoolMaker maker(config, group_size, dry_run);
  for (const StagePlan& plan : plans) maker.add_stage(plan);
  return maker.take();
}

}  // namespace dstune
