#include "tests/support/cuda_on_host/call.hpp"

#include <string>
#include <string_view>

#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

bool concerns(std::string_view wanted, int wanted_device, std::string_view function, int device) {
  return (wanted.empty() || wanted == function) && (wanted_device < 0 || wanted_device == device);
}

std::optional<int> strike(std::string_view function, int device) {
  auto& faults = state().faults;
  std::optional<int> error;
  for (auto pending = faults.begin(); pending != faults.end();) {
    const Fault& fault = pending->fault;
    if (!concerns(fault.function, fault.device, function, device) || ++pending->seen < fault.call) {
      ++pending;
      continue;
    }
    error = fault.error;
    if (fault.sticky)
      state().devices.at(static_cast<std::size_t>(device)).sticky_error = fault.error;
    pending = faults.erase(pending);
  }
  return error;
}

bool take_hang(std::string_view function, int device) {
  auto& hangs = state().hangs;
  for (auto hang = hangs.begin(); hang != hangs.end(); ++hang) {
    if (!concerns(hang->function, hang->device, function, device) || --hang->left > 0) continue;
    hangs.erase(hang);
    return true;
  }
  return false;
}

}  // namespace

std::optional<int> begin_call(const char* function) {
  const Locked locked;
  const int device = current_device();
  ++state().calls[{function, device}];
  if (!state().machine.driver) return cudaErrorInsufficientDriver;
  const auto error = strike(function, device);
  call_hangs() = take_hang(function, device);
  if (error) return error;
  const int sticky = state().devices.at(static_cast<std::size_t>(device)).sticky_error;
  return sticky != 0 ? std::optional(sticky) : std::nullopt;
}

bool& call_hangs() {
  static thread_local bool hangs = false;
  return hangs;
}

cudaError_t& last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace cuda_on_host
