// Retires workers on which experiments fail that run elsewhere.
#pragma once

#include <set>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// Draws the conclusions of experiments that failed and were tried once more, with a warning each.
class SickWorkers {
 public:
  explicit SickWorkers(WorkerPool& pool) : pool_(pool) {}

  /// Retires the sick (find_sick()), and names once whoever failed again because nobody could take
  /// its place. @param failed  the first try; `second` and `record` are of the second
  void judge(const FailedTry& failed, const Completion& second, const Record& record);

  /// Retires those that were sick in `records` of the run that goes on, unless fewer than `ranks`
  /// others would be left.
  void retire_again(const std::vector<Record>& records, int ranks);

 private:
  void name_constant_culprits(const FailedTry& first, const Completion& second,
                              const Record& record);

  WorkerPool& pool_;
  std::set<int> named_;  ///< ranks that were named as the constant culprit
};

}  // namespace dstune
