// The cost of the training's host code, which C++ does not have: eager PyTorch's operators and
// modules, and DeepSpeed's Python hooks, launches, waits.
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

/// A place in the step at which the training's host code spends time of its own.
enum class HostEvent {
  gradient_hook,     ///< ZeRO's handling of one gradient: stage 1 at the boundary, 2 and 3 always
  sub_module_hook,   ///< stage 3: before or after a module's forward or backward, whatever it has
  collective,        ///< launch of a collective, but for pipelined ones
  optimizer_tensor,  ///< one tensor, or this rank's part of it, in the optimizer step
  synchronization,   ///< a wait of the timer or at the end of backward, beside the waiting
  pipelined_collective,  ///< one of several that begin before any is waited for (PipelinedCalls):
                         ///< all it costs but its transfer, so that its library has no latency
                         ///< beside it
  gathered_tensor,       ///< stage 3: a tensor that is gathered for a module, with its release, but
                         ///< for hooks and collectives; not one that stays from step to step
  operator_forward,      ///< one ATen operator that eager PyTorch calls in a model's forward
  operator_backward,     ///< one that autograd calls on the way back
  module_call,           ///< a module's Python, beside its operators and DeepSpeed's hooks
  micro_step,            ///< a model's forward and backward once, beside operators and modules: its
                         ///< own Python, masks, the loss, the graph's begin and end
};

constexpr std::size_t kHostEvents = 11;

/// Whether the event is of the training without DeepSpeed: earlier profiles have none.
constexpr bool is_of_pytorch(HostEvent event) { return event >= HostEvent::operator_forward; }

/// Whether a profile may lack the event: earlier ones do, and where a calibration cannot tell
/// gathered_tensor from sub_module_hook, the latter has both.
constexpr bool is_optional(HostEvent event) {
  return event == HostEvent::pipelined_collective || event == HostEvent::gathered_tensor ||
         is_of_pytorch(event);
}

std::string_view name_of(HostEvent event);

/// Earlier versions counted the hooks of modules with parameters alone, as "module_hook", whose
/// time had those of containers and activations in it.
constexpr std::string_view kEarlierHook = "module_hook";
/// So many hooks for each of those: 48 L + 24 for 24 L + 14 in a GPT-2 of L layers (2 and 6), with
/// which profiles are calibrated.
constexpr double kHooksPerEarlier = 1.97;

/// The time that the library of the training takes for a collective: `latency` + wire_bytes() /
/// `bus_bytes_per_s`. The latter is nccl-tests' bus bandwidth, so that it holds for other numbers
/// of ranks too. The latency is that of the ranks with which it was measured. gloo copies messages
/// of some kinds, and from 32 MiB on the copy's memory is mapped anew each time: those are large.
struct LibraryRate {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::fp32;
  Seconds latency = 0;
  Seconds latency_uncertainty = 0;  ///< see HostOverhead; the bandwidth has one too
  double bus_bytes_per_s = 0;       ///< 0: nothing is added to messages that are not large
  double bus_bytes_per_s_uncertainty = 0;
  Bytes large_above = 0;  ///< larger messages have the bandwidth below; 0: there are none
  double large_bus_bytes_per_s = 0;
  double large_bus_bytes_per_s_uncertainty = 0;

  bool is_large(Bytes bytes) const { return large_above > 0 && bytes > large_above; }

  bool operator==(const LibraryRate&) const = default;
};

/// The spread that is assumed of numbers for which nobody gives one: half to twice.
constexpr double kAssumedSpread = 2;

/// How fast the training's library multiplies matrices of `dtype` on a CPU, by a product of 256 x
/// 512 by 512 x 512.
struct ProductRate {
  DType dtype = DType::fp32;
  int threads = 1;          ///< of each rank as it was measured; other numbers say nothing
  double flops_per_s = 0;   ///< > 0
  Seconds latency = 0;      ///< of each, beyond one of fp32: a kernel is looked up, operands packed
  Seconds result_byte = 0;  ///< of each byte of the result, whose memory is new as often as not

  bool operator==(const ProductRate&) const = default;
};

/// What a pass of scaled dot product attention takes the training's library on a CPU: `row` for
/// each row of each head of q, and attention_flops(), 2.5 times as many in backward, by
/// `flops_per_s`.
struct AttentionTime {
  Seconds row = 0;
  double flops_per_s = 0;  ///< > 0

  bool operator==(const AttentionTime&) const = default;
};

/// The same for both passes in `dtype`.
struct AttentionRate {
  DType dtype = DType::fp32;
  int threads = 1;  ///< as those of ProductRate
  AttentionTime forward;
  AttentionTime backward;
  bool has_dropout = false;  ///< of the probabilities: the library takes another way then

  bool operator==(const AttentionRate&) const = default;
};

/// What the training's library computes element by element, or row by row, and a profile may have
/// the time of.
enum class TimedOperation {
  dropout,  ///< random numbers included
  gelu,
  gelu_tanh,
  gelu_new,  ///< a chain of kernels, as rms_norm and rotary are
  silu,
  layer_norm,
  rms_norm,
  rotary,  ///< Rotate
  log_softmax,
};

constexpr std::size_t kTimedOperations = 9;

std::string_view name_of(TimedOperation operation);

/// What the operation takes the training's library on a CPU for each element of its result,
/// beside what an operator costs.
struct OperationRate {
  TimedOperation operation = TimedOperation::dropout;
  DType dtype = DType::fp32;
  int threads = 1;  ///< as those of ProductRate
  Seconds forward = 0;
  Seconds backward = 0;

  bool operator==(const OperationRate&) const = default;
};

/// A profile: seconds of busy host time for each event. If all are 0, no time is spent, and events
/// are still counted.
struct HostOverhead {
  std::array<Seconds, kHostEvents> seconds{};
  /// How far each may be off, independently: a standard deviation. All are 0 if nobody measured it.
  std::array<Seconds, kHostEvents> uncertainty{};
  /// Beside that, all of them together may be so many times dearer, or cheaper; 1: they may not.
  double spread_factor = 1;
  /// At most one of each kind and type; none: `collective` also contains the library's time.
  std::vector<LibraryRate> collectives = {};
  /// At most one of each type; none: products take as long as this program's.
  std::vector<ProductRate> products = {};
  /// The same of attention, with and without dropout.
  std::vector<AttentionRate> attention = {};
  /// The same of each operation.
  std::vector<OperationRate> operations = {};
  /// A text for people: "host_overhead.json, measured on node1, 2 ranks, ..."; "" for a preset.
  std::string origin = {};

  Seconds& at(HostEvent event) { return seconds[static_cast<std::size_t>(event)]; }
  Seconds at(HostEvent event) const { return seconds[static_cast<std::size_t>(event)]; }
  Seconds uncertainty_of(HostEvent event) const {
    return uncertainty[static_cast<std::size_t>(event)];
  }
  bool operator==(const HostOverhead&) const = default;
};

/// The rate of a kind of collective in `dtype`. If there is none, that of a type with as many
/// bytes, or else the first of this kind, since bytes cost the same whatever they mean. Null if the
/// profile has none of this kind: then nothing is known about it.
const LibraryRate* library_rate(const HostOverhead& overhead, CollectiveKind kind, DType dtype);

/// What the profile has of products of `dtype` with so many threads. Null: nothing.
const ProductRate* product_rate(const HostOverhead& overhead, DType dtype, int threads);

/// The same of attention; where the profile has nothing with dropout, what it has without.
const AttentionRate* attention_rate(const HostOverhead& overhead, DType dtype, int threads,
                                    bool has_dropout);

/// The same of an operation.
const OperationRate* operation_rate(const HostOverhead& overhead, TimedOperation operation,
                                    DType dtype, int threads);

/// The bandwidth that a message of `bytes` has.
inline double bus_bytes_per_s(const LibraryRate& rate, Bytes bytes) {
  return rate.is_large(bytes) ? rate.large_bus_bytes_per_s : rate.bus_bytes_per_s;
}

/// The time that the library takes for a message of `bytes` (as in CollectiveCount) among `ranks`.
/// 0 for one rank, and where library_rate() is null.
/// @param has_latency  false: the call goes with the one before it, or is a pipelined_collective
Seconds library_time(const HostOverhead& overhead, CollectiveKind kind, DType dtype, Bytes bytes,
                     int ranks, bool has_latency = true);

/// Gives `pipelined_collective` what an all-gather by itself costs, its library's latency included.
/// For a profile that does not know the event.
void price_pipelined_as_others(HostOverhead& overhead);

/// The preset of GPUs, and of a backend without one of its own; it is made of published numbers.
constexpr std::string_view kCudaOverhead = "cuda";
/// The preset of DeepSpeed's CPU accelerator, whose collectives are gloo's; it was measured once.
constexpr std::string_view kGlooOverhead = "cpu-gloo";

constexpr std::string_view kNoOverhead = "none";

/// The presets that are part of dstune-mpi and measure nobody's machine (docs/host-overhead.md has
/// the sources): "cuda" (once named "gpu-estimate") and "cpu-gloo", both with kAssumedSpread, and
/// "none", all 0. Nothing for another name.
std::optional<HostOverhead> host_overhead_preset(std::string_view name);
/// The names of the presets, without earlier ones.
std::vector<std::string> host_overhead_presets();

/// The name of the preset that has the numbers of `overhead`, or "" for a profile.
std::string_view preset_of(const HostOverhead& overhead);

/// What it may cost to choose by a preset, a clause for people; "" for a profile and for "none".
std::string preset_cost(const HostOverhead& overhead);

/// "preset cpu-gloo", or the profile's origin.
std::string describe(const HostOverhead& overhead);

/// The seconds by the names of their events, and all other members; the inverse gives the same
/// values. Text that earlier versions wrote has only seconds, and is read with kAssumedSpread if
/// they are not all 0; in those versions a pipelined collective was a collective like any other.
json::object to_json(const HostOverhead& overhead);
/// @throws std::exception  if `object` is no profile
HostOverhead host_overhead_from_json(const json::object& object);

}  // namespace dstune
