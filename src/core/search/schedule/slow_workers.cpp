#include "core/search/schedule/slow_workers.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr double kSlow = 1.3;
constexpr int kExperiments = 3;
/// The factor between shares of a core from which a worker counts as slow: two workers on one core
/// are slow beside those with a core each, but of three workers that take turns on two cores none
/// is.
constexpr double kSlowShare = 1.6;
/// If more than a quarter of the others have less than this share of a core, the machine is busy,
/// and the workers that get the cores change.
constexpr double kQuietShare = 0.75;
constexpr double kSlowBeforeRun = 3;
/// A factor that three workers which meet on one core for a while do not reach.
constexpr double kSureShare = 2.4;
/// How many suspicions of a worker by its share may prove unfounded before shares are no longer
/// held against it: each costs an experiment.
constexpr int kMostCleared = 3;
/// Seconds of work below which an experiment alone says nothing, because the period of a limit on
/// processor time is 0.1 s.
constexpr Seconds kLeastTrial = 0.1;

using Uses = std::deque<CoreUse>;

double share_of(const Uses& uses) {
  CoreUse sum;
  for (const CoreUse& use : uses) {
    sum.wanted += use.wanted;
    sum.had += use.had;
  }
  return core_share(sum);
}

double best_probe(const Uses& uses, const std::string& probe) {
  double best = 0;
  for (const CoreUse& use : uses) {
    if (use.probe == probe) best = std::max(best, use.probe_per_s);
  }
  return best;
}

Seconds work_of(const Uses& uses) {
  return std::accumulate(uses.begin(), uses.end(), Seconds{0},
                         [](Seconds sum, const CoreUse& use) { return sum + use.wanted; });
}

/// The factor by which a worker must have less of a core than the others to be slow; `shares` is
/// not empty.
double least_factor(std::vector<double> shares) {
  const auto quarter = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 4);
  std::nth_element(shares.begin(), quarter, shares.end());
  return *quarter < kQuietShare ? kSlowBeforeRun : kSlowShare;
}

std::string percent_of(double share) { return concat(fixed(share * 100, 0), " %"); }

std::string name_of(const Worker& worker) {
  return concat("rank ", worker.rank, " on ", worker.host);
}

/// The place of the slowest rank of a group, and why it is slow beside its peers; "" if it is not.
std::pair<std::size_t, std::string> slowest_of_group(const std::vector<Seconds>& times) {
  if (times.size() < 2) return {0, ""};
  const auto slowest = std::max_element(times.begin(), times.end());
  std::vector<Seconds> others = times;
  others.erase(others.begin() + (slowest - times.begin()));
  const Seconds usual = summarize(others).median;
  const auto place = static_cast<std::size_t>(slowest - times.begin());
  if (!(usual > 0) || *slowest <= kSlow * usual) return {place, ""};
  return {place, concat("computes ", fixed(*slowest / usual, 1), " times as long as its peers (",
                        format_seconds(*slowest), " against ", format_seconds(usual), " per step")};
}

}  // namespace

void SlowWorkers::remember(const std::string& experiment, const Measured& measured,
                           const std::vector<Worker>& workers) {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    History& history = histories_[workers[i].rank];
    history.hardware = workers[i].hardware;
    history.experiments.push_back(experiment);
    if (measured.core_use.size() != workers.size()) continue;
    history.uses.push_back(measured.core_use[i]);
    if (history.uses.size() > kExperiments) history.uses.pop_front();
  }
}

std::optional<SlowSuspect> SlowWorkers::suspect(const Worker& worker, const CoreUse& use) const {
  const History& own = histories_.at(worker.rank);
  std::vector<double> shares;
  std::vector<double> probes;
  for (const auto& [rank, other] : histories_) {
    if (rank == worker.rank || other.uses.empty()) continue;
    if (work_of(other.uses) > 0) shares.push_back(share_of(other.uses));
    const double theirs = best_probe(other.uses, use.probe);
    if (other.hardware == own.hardware && theirs > 0) probes.push_back(theirs);
  }
  const bool is_long = use.wanted >= kLeastTrial;
  if (!shares.empty() && own.cleared_shares < kMostCleared &&
      (is_long || work_of(own.uses) >= kLeastTrial)) {
    const double share = is_long ? core_share(use) : share_of(own.uses);
    const double usual = summarize(shares).median;
    if (share * least_factor(shares) < usual) {
      return SlowSuspect{
          worker,
          concat("had ", percent_of(share), " of a core where the others had ", percent_of(usual)),
          share * kSureShare <= usual, false};
    }
  }
  const auto tries = std::ranges::count(own.uses, use.probe, &CoreUse::probe);
  const double best = best_probe(own.uses, use.probe);
  if (probes.empty() || own.probe_is_cleared || tries < kExperiments || best <= 0) {
    return std::nullopt;
  }
  const double ratio = summarize(probes).median / best;
  if (ratio <= kSlow) return std::nullopt;
  return SlowSuspect{
      worker,
      concat("takes ", fixed(ratio, 1), " times as long as the others for a fixed piece of work"),
      true, true};
}

std::vector<SlowSuspect> SlowWorkers::look(const std::string& experiment, const Measured& measured,
                                           const std::vector<Worker>& workers) {
  remember(experiment, measured, workers);
  const bool has_times = measured.compute_times.size() == workers.size();
  const auto [place, beside_peers] =
      slowest_of_group(has_times ? measured.compute_times : std::vector<Seconds>{});
  std::vector<SlowSuspect> suspects;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const Worker& worker = workers[i];
    const bool has_use = measured.core_use.size() == workers.size();
    const auto found = has_use ? suspect(worker, measured.core_use[i]) : std::nullopt;
    if (found) suspects.push_back(*found);
    const bool is_slow_peer = i == place && !beside_peers.empty();
    int& count = histories_.at(worker.rank).in_a_row;
    count = is_slow_peer || found ? count + 1 : 0;
    if (count < kExperiments) continue;
    const std::string what =
        is_slow_peer ? concat(beside_peers, " in ") : concat(found->how, " (in ");
    name(worker, concat(what, experiment, ", the third experiment in a row); ",
                        workers.size() > 1 ? "every experiment waits for it"
                                           : "what it measures is too slow"));
  }
  return suspects;
}

void SlowWorkers::compare(const std::string& experiment, const std::vector<SlowSuspect>& suspects,
                          Seconds there, Seconds elsewhere) {
  for (const SlowSuspect& suspect : suspects) {
    History& history = histories_[suspect.worker.rank];
    std::erase(history.experiments, experiment);
    const bool is_slower = elsewhere > 0 && there > kSlow * elsewhere;
    if (!is_slower) {
      history.in_a_row = 0;
      if (suspect.by_probe) {
        history.probe_is_cleared = true;
      } else {
        ++history.cleared_shares;
      }
    }
    if (!is_slower || !suspect.is_sure) continue;
    name(suspect.worker,
         concat(suspect.how, ", and ", experiment, " took ", fixed(there / elsewhere, 1),
                " times as long with it as without it (", format_seconds(there), " against ",
                format_seconds(elsewhere),
                " per step); it gets work only where the others are too "
                "few"));
  }
}

void SlowWorkers::name(const Worker& worker, const std::string& what) {
  if (!named_.insert(worker.rank).second) return;
  constexpr std::size_t kShown = 3;
  std::vector<std::string> before = histories_[worker.rank].experiments;
  const std::size_t count = before.size();
  before.resize(std::min(count, kShown));
  lines_.push_back(concat(
      name_of(worker), " ", what,
      ": look for other programs, limits of a cgroup, heat or shared cores there",
      before.empty() ? ""
                     : concat("; what was measured with it may be too slow: ", join(before, ", "),
                              count > kShown ? ", ..." : "")));
  warnings_.push_back(lines_.back());
}

std::vector<std::string> SlowWorkers::take_warnings() { return std::exchange(warnings_, {}); }

}  // namespace dstune
