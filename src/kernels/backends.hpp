// The backends of this build, in one table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.hpp"

namespace dstune {

/// What each backend finds here, the best first; those that cannot be used say why. Asks the
/// hardware anew in each call.
std::vector<DeviceInfo> describe_devices();

/// @throws Error  if there is no such backend, or it cannot be used here; the message says why
std::unique_ptr<Backend> make_backend(const std::string& name);

/// One line each for --version: the backends, and GPUs that this version cannot use.
std::vector<std::string> describe_backends();

}  // namespace dstune
