#include "tests/support/cuda_on_host/control.hpp"

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/compiled_code.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {

void set_up(const Machine& machine) {
  release_hangs();
  join_closed_streams(true);
  last_error() = cudaSuccess;
  current_device() = 0;
  const Locked locked;
  MachineState& all = state();
  all.machine = machine;
  all.has_code = machine.architectures.empty() ||
                 has_code_for(machine.architectures, machine.major, machine.minor);
  all.devices.assign(static_cast<std::size_t>(machine.devices > 0 ? machine.devices : 1), {});
  for (const auto& [pointer, allocation] : all.allocations) {
    if (allocation.device < machine.devices) {
      all.devices[static_cast<std::size_t>(allocation.device)].used += allocation.bytes;
    }
  }
  for (const auto& [handle, pages] : all.pages) {
    if (pages.device < machine.devices) {
      all.devices[static_cast<std::size_t>(pages.device)].used += pages.bytes;
    }
  }
  all.shared_limits.clear();
  all.faults.clear();
  all.effects.clear();
  all.calls.clear();
  all.full_queues = 0;
  all.log = false;
  all.deaf_stream = -1;
}

void inject(const Fault& fault) {
  const Locked locked;
  state().faults.push_back({fault});
}

int faults_left() {
  const Locked locked;
  return static_cast<int>(state().faults.size());
}

void hang_at(const std::string& function, std::uint64_t call, int device) {
  const Locked locked;
  state().effects.push_back({function, device, call, {.hangs = true}});
}

void corrupt_at(const std::string& function, std::uint64_t call, int device) {
  const Locked locked;
  state().effects.push_back({function, device, call, {.corrupts = true}});
}

void fail_later_at(const std::string& function, std::uint64_t call, int error, int device) {
  const Locked locked;
  state().effects.push_back({function, device, call, {.hangs = true, .async_error = error}});
}

void release_hangs() {
  const Locked locked;
  ++state().hang_releases;
  state().changed.notify_all();
}

void deafen(int stream) {
  const Locked locked;
  state().deaf_stream = stream;
}

std::uint64_t calls(const std::string& function, int device) {
  const Locked locked;
  std::uint64_t sum = 0;
  for (const auto& [key, count] : state().calls) {
    const bool counts =
        (function.empty() || key.first == function) && (device < 0 || key.second == device);
    if (counts) sum += count;
  }
  return sum;
}

std::uint64_t full_queues() {
  const Locked locked;
  return state().full_queues;
}

void record_log(bool on) {
  const Locked locked;
  state().log = on;
}

std::vector<std::string> log_of(cudaStream_t stream) {
  const Locked locked;
  return stream->log;
}

Live live() {
  const Locked locked;
  const MachineState& all = state();
  Live result{.allocations = static_cast<int>(all.allocations.size()),
              .pages = static_cast<int>(all.pages.size()),
              .ranges = static_cast<int>(all.ranges.size()),
              .host_allocations = static_cast<int>(all.host_allocations.size()),
              .streams = static_cast<int>(all.streams.size()),
              .events = all.events,
              .communicators = all.communicators,
              .library_handles = all.library_handles};
  for (const auto& [pointer, allocation] : all.allocations) result.bytes += allocation.bytes;
  for (const auto& [handle, pages] : all.pages) result.bytes += pages.bytes;
  return result;
}

}  // namespace cuda_on_host
