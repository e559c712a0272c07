#include "tests/support/cuda_on_host/call.hpp"

#include <string>
#include <string_view>

#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

bool concerns(std::string_view wanted, int wanted_device, std::string_view function, int device) {
  return (wanted.empty() || wanted == function) && (wanted_device < 0 || wanted_device == device);
}

/// The driver's functions have the same numbers.
bool has_runtime_errors(std::string_view function) {
  return function.starts_with("cuda") || function.starts_with("cuMem") ||
         function.starts_with("cuDevice");
}

std::optional<CallError> strike(std::string_view function, int device) {
  auto& faults = state().faults;
  std::optional<CallError> error;
  for (auto pending = faults.begin(); pending != faults.end();) {
    const Fault& fault = pending->fault;
    if (!concerns(fault.function, fault.device, function, device) || ++pending->seen < fault.call) {
      ++pending;
      continue;
    }
    error = {fault.error, fault.function.empty() || has_runtime_errors(function)};
    if (fault.sticky) {
      state().devices.at(static_cast<std::size_t>(device)).sticky_error =
          error->cuda ? fault.error : int{cudaErrorLaunchFailure};
    }
    pending = faults.erase(pending);
  }
  return error;
}

CallEffects take_effects(std::string_view function, int device) {
  auto& pending = state().effects;
  for (auto effect = pending.begin(); effect != pending.end(); ++effect) {
    if (!concerns(effect->function, effect->device, function, device) || --effect->left > 0)
      continue;
    const CallEffects effects = effect->effects;
    pending.erase(effect);
    return effects;
  }
  return {};
}

}  // namespace

std::optional<CallError> begin_call(const char* function) {
  const Locked locked;
  const int device = current_device();
  ++state().calls[{function, device}];
  const Machine& machine = state().machine;
  if (!machine.driver || machine.driver_version < CUDART_VERSION) {
    return CallError{cudaErrorInsufficientDriver};
  }
  const auto error = strike(function, device);
  call_effects() = take_effects(function, device);
  if (error) return error;
  const int sticky = state().devices.at(static_cast<std::size_t>(device)).sticky_error;
  return sticky != 0 ? std::optional(CallError{sticky}) : std::nullopt;
}

CallEffects& call_effects() {
  static thread_local CallEffects effects;
  return effects;
}

cudaError_t& last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace cuda_on_host
