#include "check_command.hpp"

#include "core/base/exit_code.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/search/tuners/report/check.hpp"
#include "core/search/tuners/report/final_status.hpp"
#include "kernels/backends.hpp"

namespace dstune {

int print_check(const CommandLine& options) {
  const auto verdict = check_run(options, local_backends());
  if (!verdict) {
    log_error(kNothingFits);
    return exit_nothing_fits;
  }
  print(*verdict + "\n");
  return exit_found;
}

}  // namespace dstune
