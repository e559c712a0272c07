// Notices a worker that is slow in every experiment: each waits for it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// Compares what the ranks of a group computed in the same steps, waiting for each other left out.
/// Groups of one have nothing to be compared with.
class SlowWorkers {
 public:
  /// A warning with names and numbers when a worker took more than 1.3 times the median of the
  /// others in three experiments in a row; once for each.
  /// @param workers  that ran it, in group order
  std::optional<std::string> look(const std::string& experiment, const Measured& measured,
                                  const std::vector<Worker>& workers);

 private:
  std::map<int, int> in_a_row_;  ///< by rank: experiments in which it was the slow one
  std::set<int> named_;
};

}  // namespace dstune
