#include "core/search/space/pool.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/text.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/space/effect.hpp"
#include "core/search/space/leanest.hpp"
#include "core/search/space/normal_form.hpp"
#include "core/search/space/validity.hpp"
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
      searched.verdicts.reserve(searched.space.size());
      for (std::uint64_t i = 0; i < searched.space.size(); ++i) {
        searched.verdicts.push_back(verdict_of(searched, i));
      }
    }
  }

  Pool take() {
    if (config_.space.prune_dominated) prune_dominated();
    return std::move(pool_);
  }

 private:
  StageFunnel& funnel() { return pool_.funnel.back(); }

  std::uint32_t verdict_of(const SearchedSpace& searched, std::uint64_t index) {
    const Space& space = searched.space;
    ++funnel().generated;
    if (const std::uint64_t first = space.first_alike(index); first != index) {
      repeat(searched.verdicts[first], space, index);
      return searched.verdicts[first];
    }
    DeepSpeedConfig config = space.config(index);
    if (const auto fault = validity_.fault(config)) return invalid(*fault);
    const std::int64_t length = tuned_sequence_length(config.json()).value_or(0);
    const auto [known, is_new] = by_form_.try_emplace(concat(form_.key(config.step()), length), 0);
    if (is_new) {
      known->second = distinct(space, index, std::move(config));
    } else {
      repeat(known->second, space, index);
    }
    return known->second;
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

  std::uint32_t distinct(const Space& space, std::uint64_t index, DeepSpeedConfig config) {
    const auto ranks = ranks_that_differ(config.step(), parameters_, group_size_);
    Effect effect =
        find_effect(make_experiment(config_, group_size_, {"", config}), ranks, dry_run_);
    if (!effect.skipped.empty()) return invalid(effect.skipped);
    const auto [known, is_new] = by_effect_.try_emplace(effect.number, 0);
    if (!is_new) {
      repeat(known->second, space, index);
      return known->second;
    }
    Candidate candidate{space.name(index), std::move(config)};
    candidate.name = unused_name(candidate);
    known->second = add({effect.fits ? FateKind::pooled : FateKind::does_not_fit, effect.shortage,
                         candidate.name, pool_.spaces.size() - 1, index});
    if (!effect.fits) {
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
  std::unordered_map<std::string, std::uint32_t> by_form_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_effect_;
  std::unordered_map<std::string, std::uint32_t> by_reason_;
  std::vector<std::size_t> candidate_of_;  // by verdict
  std::set<std::string> names_;
};

}  // namespace

DryRunner make_dry_runner(const Device* imitated) {
  return [imitated, model = std::make_shared<LastModel>()](const Experiment& experiment, int rank) {
    return dry_run(experiment, rank, imitated, model.get());
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
