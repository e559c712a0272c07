#include "core/search/tuners/report/final_status.hpp"

#include <string>

#include "core/base/files/exit_code.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

std::string describe_shortage(const TuningResult& result) {
  const Shortage& shortage = *result.shortage;
  std::string few =
      concat(shortage.experiment, " needs a group of ", shortage.needed, " workers, but only ",
             shortage.left, shortage.left == 1 ? " is left" : " are left",
             "; continue the run on all ranks with --resume");
  if (result.largest_group == 0) return few;
  return concat(few, ", or, if a host is gone for good, without it with --ranks-per-experiment ",
                result.largest_group, " --resume");
}

}  // namespace

RunStatus final_status(const TuningResult& result, Seconds elapsed) {
  RunStatus status;
  status.experiments = static_cast<int>(result.records.size());
  status.elapsed = elapsed;
  status.slow_workers = result.slow_workers;
  if (result.best) status.best = result.best->experiment.name;
  if (result.wrong_sums) {
    status.state = RunState::failed;
    status.exit_code = exit_internal_error;
    status.provisional = true;
    status.message = concat(
        "collectives gave wrong sums, so no training there can be trusted: ", *result.wrong_sums,
        "; once that is fixed, or dstune.exclude leaves them out, continue with --resume");
  } else if (result.stopped) {
    status.state = RunState::interrupted;
    status.exit_code = exit_interrupted;
    status.provisional = true;
    status.message = "a signal ended the run; continue it with --resume";
    if (result.shortage) {
      status.message = describe_shortage(result);
      status.restart = "worker_lost";
    }
  } else if (result.best) {
    status.state = RunState::found;
    status.exit_code = exit_found;
  } else if (result.nothing_fits) {
    status.state = RunState::nothing_fits;
    status.exit_code = exit_nothing_fits;
    status.message = nothing_fits_text(result.full);
  } else {
    status.state = RunState::failed;
    status.exit_code = exit_internal_error;
    status.message = "no experiment could be measured; the reasons are in results.csv";
  }
  return status;
}

}  // namespace dstune
