#include "core/search/feasibility/precision.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"

namespace dstune {
namespace {

/// Why `device` does not settle it; "" if it does.
std::string why_open(const TuningConfig& config, const DeviceInfo& device) {
  const BackendTraits traits = traits_of_backend(device.backend);
  if (traits.computes_on_host) return "a CPU cannot tell which that is";
  if (config.open_precision == "bf16" && !device.trains_in_bf16) {
    return concat(device.name, " has no bf16");
  }
  return "";
}

}  // namespace

std::string open_precision_question(const TuningConfig& config, const std::string& backend,
                                    const std::vector<WorkerInfo>& workers) {
  if (config.open_precision.empty()) return "";
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* const device = find_device(worker.devices, backend);
    const std::string why = device == nullptr ? "" : why_open(config, *device);
    if (why.empty()) continue;
    return concat("leaves the precision to the Trainer (\"auto\"), and ", why,
                  ": give --precision bf16 if you train with --bf16, --precision fp16 with --fp16, "
                  "or --precision fp32 with neither");
  }
  return "";
}

void check_open_precision(const TuningConfig& config, const std::string& backend,
                          const std::vector<WorkerInfo>& workers) {
  std::string question = open_precision_question(config, backend, workers);
  if (question.empty()) return;
  throw ConfigError(config.source,
                    {{concat('/', config.open_precision, "/enabled"), std::move(question)}});
}

}  // namespace dstune
