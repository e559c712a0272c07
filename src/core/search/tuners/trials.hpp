// What has been tried of a pool, what came of it, and what may be tried next.
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

/// The candidates of a pool by their index, and what was learnt of each.
///
/// What was out of memory teaches: candidates of the same stage that need as much or more by dry
/// run are deferred until all that need less have been tried, and then come one by one, the
/// smallest first. What needs no more than one that ran is not deferred.
class Trials {
 public:
  Trials(Pool pool, Metric metric);

  std::size_t size() const { return pool_.candidates.size(); }
  const PooledCandidate& at(std::size_t index) const { return pool_.candidates[index]; }

  /// @throws std::out_of_range  if the experiment is no candidate's
  void learn(const Record& record);

  std::size_t tried() const { return tried_; }
  bool is_tried(std::size_t index) const { return records_[index].has_value(); }
  /// nullptr if it was not tried, or has no numbers.
  const Measured* measured(std::size_t index) const;
  std::size_t measurements() const { return measurements_; }

  /// What may be tried now, in the pool's order; last, by stage, the deferred that have their turn.
  std::vector<std::size_t> open() const;
  std::vector<std::size_t> untried() const;
  /// How many of the same stage were out of memory that need no more of it; 0 if one ran that needs
  /// as much.
  int warnings(std::size_t index) const;

  /// The best measured, the earlier of equal ones; none if nothing was.
  std::optional<std::size_t> best() const { return best_; }
  const Record& record(std::size_t index) const { return *records_[index]; }
  /// Candidates that were tried since the best, itself included; 0: there is none.
  std::size_t since_best() const { return best_ ? tried_ - best_trial_ : 0; }

 private:
  Bytes memory(std::size_t index) const { return at(index).dry.peak_memory.counted(); }

  Pool pool_;
  Metric metric_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::optional<Record>> records_;
  std::map<int, std::vector<Bytes>> too_large_;  ///< by stage: what was out of memory
  std::map<int, Bytes> ran_;                     ///< by stage: the most that ran
  std::size_t tried_ = 0;
  std::size_t measurements_ = 0;
  std::optional<std::size_t> best_;
  std::size_t best_trial_ = 0;  ///< how many had been tried before it
};

}  // namespace dstune
