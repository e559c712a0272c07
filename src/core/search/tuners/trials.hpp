// The candidates of a pool that were tried, their outcomes, and those that may be tried next.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// Holds the candidates of a pool by their index, and what was learnt of each.
///
/// A candidate that was out of memory defers those of its stage that need as much memory or more by
/// dry run until all others of the stage have been tried; then they come one by one, the smallest
/// first. A candidate that needs no more than one that ran is not deferred.
class Trials {
 public:
  Trials(Pool pool, Metric metric);

  std::size_t size() const { return pool_.candidates.size(); }
  const PooledCandidate& at(std::size_t index) const { return pool_.candidates[index]; }

  /// @throws std::out_of_range  if no candidate has that name
  std::size_t index_of(const std::string& name) const { return by_name_.at(name); }
  /// @throws std::out_of_range  if the experiment is of no candidate
  void learn(const Record& record);

  std::size_t tried() const { return tried_; }
  bool is_tried(std::size_t index) const { return records_[index].has_value(); }
  /// The measurement of a candidate; nullptr if it was not tried, or has no numbers.
  const Measured* measured(std::size_t index) const;
  std::size_t measurements() const { return measurements_; }

  /// The candidates that may be tried now, in the pool's order; the deferred ones whose turn it is
  /// come last, by stage.
  std::vector<std::size_t> open() const;
  std::vector<std::size_t> untried() const;
  /// The number of candidates of the same stage that were out of memory although they need no more
  /// than this one; 0 if one ran that needs as much.
  int warnings(std::size_t index) const;

  /// The best measured candidate, of exactly equal ones the simplest (is_better_choice()), and of
  /// equally simple ones the earliest; none if nothing was measured.
  std::optional<std::size_t> best() const { return best_; }
  const Record& record(std::size_t index) const { return *records_[index]; }
  /// The number of candidates that were tried since the first that was as fast as the best, itself
  /// included; 0 if there is none.
  std::size_t since_best() const { return best_ ? tried_ - best_trial_ : 0; }

 private:
  Bytes memory(std::size_t index) const { return at(index).dry.peak_memory.counted(); }

  Pool pool_;
  Metric metric_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::optional<Record>> records_;
  /// By stage: the memory of candidates that were out of memory, ascending.
  std::map<int, std::vector<Bytes>> too_large_;
  std::map<int, Bytes> ran_;  ///< by stage: the most memory of a candidate that ran
  std::size_t tried_ = 0;
  std::size_t measurements_ = 0;
  std::optional<std::size_t> best_;
  std::size_t best_trial_ = 0;  ///< how many candidates had been tried before the best
};

}  // namespace dstune
