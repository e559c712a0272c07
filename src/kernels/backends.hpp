// The backends of this build, in one table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.hpp"

namespace dstune {

/// What each backend finds here for a process at `placement`, the best first; those that cannot be
/// used say why. Asks the hardware anew in each call, and leaves it untouched.
std::vector<DeviceInfo> describe_devices(const Placement& placement = {});

/// @throws Error  if there is no such backend, or it cannot be used here; the message says why
std::unique_ptr<Backend> make_backend(const std::string& name, const Placement& placement = {});

/// LocalBackends::make_to_ask
std::unique_ptr<Backend> make_backend_to_ask(const std::string& name);

/// LocalBackends::measure
DeviceInfo measure_device(const std::string& name, Placement placement = {});

/// What is here, as core asks for it.
LocalBackends local_backends();

/// @throws ConfigError  if a variable of the environment that concerns a backend is wrong
void check_environment();

/// "backends: cpu, sim", those that can be used here.
std::string usable_backends();

/// A line for each library that multiplies or runs GPUs here: "BLAS: OpenBLAS 0.3.21 (Haswell),
/// oneDNN 2.6.3".
std::vector<std::string> library_lines();

/// A line for each library and GPU that the backends would use, then for each backend whether it
/// can be used here, or why not.
std::vector<std::string> list_backends();

}  // namespace dstune
