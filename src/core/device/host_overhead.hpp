// The cost of real DeepSpeed's host code, which C++ does not have: Python hooks, launches, waits.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/device/ledger/collective_kind.hpp"

namespace dstune {

/// A place in the step at which DeepSpeed's host code spends time of its own.
enum class HostEvent {
  gradient_hook,  ///< ZeRO's handling of one gradient: stage 1 at the boundary, 2 and 3 always
  module_hook,    ///< stage 3: before and after each module with parameters, forward and backward
  collective,     ///< launch of a collective, but for pipelined ones
  optimizer_tensor,      ///< one tensor, or this rank's part of it, in the optimizer step
  synchronization,       ///< a wait of the timer or at the end of backward, beside the waiting
  pipelined_collective,  ///< one of several that begin before any is waited for (PipelinedCalls):
                         ///< all it costs but its transfer, so that its library has no latency
                         ///< beside it
};

constexpr std::size_t kHostEvents = 6;

std::string_view name_of(HostEvent event);

/// The time that the library of the training takes for a collective: `latency`, and wire_bytes() /
/// `bus_bytes_per_s`, which is nccl-tests' bus bandwidth, so that it holds for other numbers of
/// ranks too. The latency is that of the ranks that it was measured with.
struct LibraryRate {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::fp32;
  Seconds latency = 0;
  Seconds latency_uncertainty = 0;  ///< see HostOverhead; likewise of the bandwidth
  double bus_bytes_per_s = 0;       ///< > 0
  double bus_bytes_per_s_uncertainty = 0;

  bool operator==(const LibraryRate&) const = default;
};

/// The spread that is assumed of numbers for which nobody says one: half to twice.
constexpr double kAssumedSpread = 2;

/// A profile: seconds of busy host time per event. All 0: none is spent, events are still counted.
struct HostOverhead {
  std::array<Seconds, kHostEvents> seconds{};
  /// How far each may be off, by itself: a standard deviation. All 0 if nobody measured it.
  std::array<Seconds, kHostEvents> uncertainty{};
  /// Beside that, all of them together may be so many times dearer, or cheaper; 1: they are not.
  double spread_factor = 1;
  /// At most one of each kind and type; none: `collective` holds what the library takes, too.
  std::vector<LibraryRate> collectives = {};
  /// For people: "host_overhead.json, measured on node1, 2 ranks, ..."; "" of a preset.
  std::string origin = {};

  Seconds& at(HostEvent event) { return seconds[static_cast<std::size_t>(event)]; }
  Seconds at(HostEvent event) const { return seconds[static_cast<std::size_t>(event)]; }
  Seconds uncertainty_of(HostEvent event) const {
    return uncertainty[static_cast<std::size_t>(event)];
  }
  bool operator==(const HostOverhead&) const = default;
};

/// The rate of a kind of collective in `dtype`; where that is not there, of a type of as many
/// bytes, else of the first there is, since bytes cost the same whatever they mean. Null if the
/// profile has none of this kind: nothing is known of it then.
const LibraryRate* library_rate(const HostOverhead& overhead, CollectiveKind kind, DType dtype);

/// The time that the library takes for a message of `bytes` (as in CollectiveCount) among `ranks`.
/// 0 for one rank, and where library_rate() is null.
/// @param has_latency  false: it goes with the call before it, or is a pipelined_collective
Seconds library_time(const HostOverhead& overhead, CollectiveKind kind, DType dtype, Bytes bytes,
                     int ranks, bool has_latency = true);

/// Gives `pipelined_collective` what an all-gather by itself costs, its library's latency too: for
/// a profile that does not know the event.
void price_pipelined_as_others(HostOverhead& overhead);

/// The preset of GPUs, and of a backend that has none of its own: from what was published.
constexpr std::string_view kCudaOverhead = "cuda";
/// The preset of DeepSpeed's CPU accelerator, whose collectives are gloo's: measured once.
constexpr std::string_view kGlooOverhead = "cpu-gloo";

constexpr std::string_view kNoOverhead = "none";

/// The presets that ship with dstune-mpi and are no measurement of anybody's machine
/// (docs/host-overhead.md has the sources): "cuda" (once named "gpu-estimate"), "cpu-gloo", both
/// with kAssumedSpread, and "none", all 0. Nothing for another name.
std::optional<HostOverhead> host_overhead_preset(std::string_view name);
/// Their names, without earlier ones.
std::vector<std::string> host_overhead_presets();

/// Which of them `overhead` is, by its numbers, or "" for a profile.
std::string_view preset_of(const HostOverhead& overhead);

/// "preset cpu-gloo", or the profile's origin.
std::string describe(const HostOverhead& overhead);

/// Seconds by the events' names, and what else there is, exact both ways. Text that earlier
/// versions wrote has seconds alone, and kAssumedSpread if they are not all 0; to them a pipelined
/// collective was one like any other.
json::object to_json(const HostOverhead& overhead);
/// @throws std::exception  if `object` is none
HostOverhead host_overhead_from_json(const json::object& object);

}  // namespace dstune
