#include "core/report/files/heartbeat.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {

void Heartbeat::beat() {
  next_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kHeartbeat));
  journal_.stay_in_place();
  RunStatus status;
  status.best = progress_.best_name();
  status.provisional = status.best.has_value();
  status.experiments = progress_.finished();
  status.elapsed = journal_.now();
  status.slow_workers = progress_.slow_workers();
  results_.write_status(stamped(std::move(status)));
}

void Heartbeat::beat_if_due() {
  if (Clock::now() < next_) return;
  try {
    beat();
  } catch (const Error& fault) {
    if (!journal_.is_in_place()) throw;
    if (!std::exchange(said_so_, true)) {
      log_warning(concat("no sign of life can be written: ", fault.what()));
    }
  }
}

}  // namespace dstune
