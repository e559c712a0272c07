// One line per finished experiment, for stderr.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// Counts the experiments of a run and remembers the best so far.
///
///     [17 212s] z2_gas4_tmbspg16 -> 412.6 ms +-0.8%, ..., peak 61.40 GiB  (best so far)
///     [18 214s] z1_gas2_tmbspg32 -> out of memory on rank 5 (...)  (best: z2_gas4_tmbspg16)
class Progress {
 public:
  explicit Progress(Metric metric) : metric_(metric) {}

  /// The line of the next finished record.
  /// @param now       seconds since the start of the run
  /// @param expected  experiments of the whole run where that is known: "[17/50 212s]"
  std::string line(const Record& record, bool from_journal, Seconds now,
                   std::optional<int> expected = std::nullopt);

  /// The lines that status.json is to have on slow workers from now on.
  void set_slow_workers(std::vector<std::string> lines) { slow_workers_ = std::move(lines); }
  const std::vector<std::string>& slow_workers() const { return slow_workers_; }

  int finished() const { return finished_; }
  /// Name of the best so far; none before there is one.
  std::optional<std::string> best_name() const {
    return best_ ? std::optional(best_name_) : std::nullopt;
  }

 private:
  Metric metric_;
  int finished_ = 0;
  std::optional<double> best_;
  std::string best_name_;
  std::vector<std::string> slow_workers_;
};

}  // namespace dstune
