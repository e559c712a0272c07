#include "core/report/files/heartbeat.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// Thousands of experiments that take milliseconds must not wait for the disk each time.
constexpr Seconds kBetweenEvents = 1;

}  // namespace

void Heartbeat::beat() {
  const auto after = [](Seconds time) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
  };
  next_ = after(kHeartbeat);
  next_after_event_ = after(kBetweenEvents);
  has_news_ = false;
  journal_.stay_in_place();
  RunStatus status;
  status.best = progress_.best_name();
  status.provisional = status.best.has_value();
  status.experiments = progress_.finished();
  status.elapsed = journal_.now();
  status.slow_workers = progress_.slow_workers();
  status.standing = progress_.standing(status.elapsed);
  results_.write_status(stamped(std::move(status)));
}

void Heartbeat::beat_if_due() {
  if (Clock::now() < (has_news_ ? next_after_event_ : next_)) return;
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
