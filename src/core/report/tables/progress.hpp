// What a run says of its experiments while it runs: one line for each event.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/line_width.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"
#include "core/report/tables/standing.hpp"

namespace dstune {

/// What a search still has before it, as far as it can tell.
struct Ahead {
  /// About how many experiments are still to come, those that begin now included; none: not known.
  std::optional<int> experiments = {};
  /// What one of them will take, as the step time predictor has it; none: nothing is known.
  std::optional<Seconds> each = {};
  int side_by_side = 1;  ///< how many run at once
};

/// Counts the experiments of a run and remembers what runs, the best so far and what is to come.
/// No line is longer than `columns`: names and reasons are cut in their middle, numbers never.
///
///     [17/~50 212s] z2_gas4_tmbspg16 -> 412.6 ms +-0.8 %, 77.6 samples/s, 61.40 GiB  (best so far)
///     [18/~50 214s] z1_gas2_tmbspg32 -> out of memory on rank 5 (...)  (best: z2_gas4_tmbspg16)
class Progress {
 public:
  /// @param time_budget  seconds after which the run ends, if there is such a limit
  /// @param columns  of a line; what cannot be cut may take 60 and more
  explicit Progress(Metric metric, std::optional<Seconds> time_budget = std::nullopt,
                    std::size_t columns = kLineWidth)
      : metric_(metric), time_budget_(time_budget), columns_(columns) {}

  /// Takes in what the search has before it.
  void expect(const Ahead& ahead, Seconds now);
  /// Takes in that an experiment began, or that one ended of which line() is not told. `now` is in
  /// seconds since the start of the run.
  void begins(const std::string& name, Seconds now);
  void ends(const std::string& name);

  /// The line to be said before the first experiment ends: what begins, and how long it may take.
  std::string first_line(const std::string& name) const;

  /// The line of the next finished record. @param now  seconds since the start of the run
  std::string line(const Record& record, bool from_journal, Seconds now);

  /// "[17/~50 215s] z1_gas2_tmbspg32 since 3 s; about 4 min left; best: z2_gas4_tmbspg16, ...".
  std::string running_line(Seconds now) const;

  /// The lines that status.json is to have on slow workers from now on.
  void set_slow_workers(std::vector<std::string> lines) { slow_workers_ = std::move(lines); }
  const std::vector<std::string>& slow_workers() const { return slow_workers_; }

  int finished() const { return finished_; }
  /// Name of the best so far; none before there is one.
  std::optional<std::string> best_name() const {
    return best_ ? std::optional(best_name_) : std::nullopt;
  }
  Standing standing(Seconds now) const;

 private:
  /// "before" + name + "behind" within the width, by the name's middle if need be.
  std::string with_name(const std::string& before, const std::string& name,
                        const std::string& behind) const;
  std::string position(Seconds now) const;
  /// "1.56 s +-6.1 %, 12.8 samples/s, 816.96 MiB".
  std::string numbers(const Measured& measured) const;
  std::optional<Seconds> time_left(Seconds now) const;

  Metric metric_;
  std::optional<Seconds> time_budget_;
  std::size_t columns_;
  int finished_ = 0;
  std::optional<double> best_;
  std::string best_name_;
  BestNumbers best_numbers_;
  std::vector<std::string> slow_workers_;
  std::vector<RunningExperiment> running_;
  Ahead ahead_;
  std::optional<int> expected_;  ///< finished_ in the end, about
  /// What is measured here: since when, how many, and when the last of them ended. What an earlier
  /// run of the journal took says nothing of the pace.
  std::optional<Seconds> measuring_since_;
  int measured_here_ = 0;
  Seconds last_ended_ = 0;
  std::string last_line_;
  Seconds last_line_at_ = 0;
};

}  // namespace dstune
