#include "core/search/schedule/sick_workers.hpp"

#include <algorithm>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/schedule/worker_faults.hpp"

namespace dstune {

void SickWorkers::judge(const FailedTry& failed, const Completion& second, const Record& record) {
  name_constant_culprits(failed, second, record);
  for (const auto& sick : find_sick(failed, record.outcome, record.ranks)) {
    pool_.retire(sick.rank);
    log_warning(concat(name_of(sick), " is sick and gets no more work: ", record.experiment.name,
                       " failed there (", failed.reason, ") and ran without it"));
  }
}

void SickWorkers::retire_again(const std::vector<Record>& records, int ranks) {
  for (const auto& record : records) {
    for (const auto& failed : record.failed_tries) {
      for (const auto& sick : find_sick(failed, record.outcome, record.ranks)) {
        const auto idle = pool_.idle();
        const bool is_here = std::ranges::any_of(idle, [&](const Worker& worker) {
          return worker.rank == sick.rank && worker.host == sick.host;
        });
        if (!is_here || pool_.size() <= ranks) continue;
        pool_.retire(sick.rank);
        log_warning(
            concat(name_of(sick), " gets no work, as in the resumed run: ", record.experiment.name,
                   " failed there (", failed.reason, "); --retry-failed gives it another chance"));
      }
    }
  }
}

void SickWorkers::name_constant_culprits(const FailedTry& first, const Completion& second,
                                         const Record& record) {
  for (const auto& culprit : first.culprits) {
    const auto& again = second.culprits;
    if (std::find(again.begin(), again.end(), culprit.rank) == again.end()) continue;
    if (record.experiment.ranks < 2 || !named_.insert(culprit.rank).second) continue;
    log_warning(concat(record.experiment.name, " failed twice on ", name_of(culprit),
                       ", and no other worker can take its place; if that is where the fault is, "
                       "--ranks-per-experiment ",
                       record.experiment.ranks - 1, " leaves one to spare"));
  }
}

}  // namespace dstune
