// Which backends this build and this machine have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/train/device.hpp"

namespace dstune {

/// What make_device accepts here, best first: "cpu", "sim".
std::vector<std::string> available_backends();

/// "auto" as the best available backend; a name as itself.
/// @throws Error  if the backend is unknown or not available here; the message says why
std::string resolve_backend(const std::string& backend);

/// The limit of a device that is only asked what it would need.
constexpr Bytes kNoMemory = 1;

/// @param backend  also "auto"
/// @throws Error  as resolve_backend
std::unique_ptr<Device> make_device(const std::string& backend, Bytes memory_limit);

/// One line each for --version: the backends, and GPUs that this version cannot use.
std::vector<std::string> describe_backends();

}  // namespace dstune
