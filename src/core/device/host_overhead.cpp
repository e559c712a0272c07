#include "core/device/host_overhead.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/text.hpp"

namespace dstune {

namespace {

struct Preset {
  std::string_view name;
  std::array<Seconds, kHostEvents> seconds;  ///< in the order of HostEvent
  double spread_factor;
  Seconds earlier_hook = 0;  ///< kEarlierHook's, as those were counted
  std::span<const LibraryRate> collectives = {};
};

// The event `collective` of cpu-gloo has what small messages take; only large ones take more.
constexpr LibraryRate large_rate(CollectiveKind kind, double bus_bytes_per_s) {
  return {.kind = kind, .large_above = Bytes{32} << 20U, .large_bus_bytes_per_s = bus_bytes_per_s};
}
constexpr std::array kGlooRates = {large_rate(CollectiveKind::all_gather, 0.3e9),
                                   large_rate(CollectiveKind::reduce_scatter, 0.35e9)};

// Their hooks were timed as a whole, so that gathered_tensor is in them, and by kEarlierHook.
constexpr Seconds kCudaEarlierHook = 150e-6;
constexpr Seconds kGlooEarlierHook = 450e-6;
constexpr std::array kPresets = {
    Preset{kCudaOverhead,
           {50e-6, kCudaEarlierHook / kHooksPerEarlier, 60e-6, 60e-6, 20e-6, 60e-6, 0, 2e-6, 3.5e-6,
            24e-6, 900e-6},
           kAssumedSpread,
           kCudaEarlierHook},
    Preset{kGlooOverhead,
           {160e-6, kGlooEarlierHook / kHooksPerEarlier, 3000e-6, 200e-6, 20e-6, 600e-6, 0, 2e-6,
            4e-6, 24e-6, 900e-6},
           kAssumedSpread,
           kGlooEarlierHook,
           kGlooRates},
    Preset{kNoOverhead, {}, 1},
};

constexpr std::string_view kEarlierNameOfCuda = "gpu-estimate";

HostOverhead overhead_of(const Preset& preset) {
  HostOverhead overhead;
  overhead.seconds = preset.seconds;
  overhead.spread_factor = preset.spread_factor;
  overhead.collectives.assign(preset.collectives.begin(), preset.collectives.end());
  return overhead;
}

// Journals of earlier versions have presets without the event of a micro-step; earlier ones with
// fewer and dearer hooks; earlier ones without PyTorch's events; earlier ones without collectives,
// and still earlier ones without the event of pipelined ones (host_overhead_from_json).
bool has_numbers_of(const Preset& preset, const HostOverhead& numbers) {
  HostOverhead own = overhead_of(preset);
  if (own == numbers) return true;
  own.at(HostEvent::micro_step) = 0;
  if (own == numbers) return true;
  own.at(HostEvent::sub_module_hook) = preset.earlier_hook;
  if (own == numbers) return true;
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    if (is_of_pytorch(static_cast<HostEvent>(i))) own.seconds[i] = 0;
  }
  if (own == numbers) return true;
  own.collectives.clear();
  if (own == numbers) return true;
  price_pipelined_as_others(own);
  return own == numbers;
}

/// How well `rate` stands for a collective of this kind in `dtype`; 0: not at all.
int likeness(const LibraryRate& rate, CollectiveKind kind, DType dtype) {
  if (rate.kind != kind) return 0;
  if (rate.dtype == dtype) return 3;
  return size_of(rate.dtype) == size_of(dtype) ? 2 : 1;
}

}  // namespace

std::string_view name_of(HostEvent event) {
  constexpr std::array<std::string_view, kHostEvents> kNames = {
      "gradient_hook",     "sub_module_hook",      "collective",      "optimizer_tensor",
      "synchronization",   "pipelined_collective", "gathered_tensor", "operator_forward",
      "operator_backward", "module_call",          "micro_step"};
  return kNames[static_cast<std::size_t>(event)];
}

std::string_view name_of(TimedOperation operation) {
  constexpr std::array<std::string_view, kTimedOperations> kNames = {
      "dropout",    "gelu",     "gelu_tanh", "gelu_new",   "silu",
      "layer_norm", "rms_norm", "rotary",    "log_softmax"};
  return kNames[static_cast<std::size_t>(operation)];
}

const LibraryRate* library_rate(const HostOverhead& overhead, CollectiveKind kind, DType dtype) {
  const LibraryRate* best = nullptr;
  int best_likeness = 0;
  for (const LibraryRate& rate : overhead.collectives) {
    const int own = likeness(rate, kind, dtype);
    if (own <= best_likeness) continue;
    best = &rate;
    best_likeness = own;
  }
  return best;
}

const ProductRate* product_rate(const HostOverhead& overhead, DType dtype, int threads) {
  const auto rate = std::ranges::find_if(overhead.products, [&](const ProductRate& own) {
    return own.dtype == dtype && own.threads == threads;
  });
  return rate == overhead.products.end() ? nullptr : &*rate;
}

const AttentionRate* attention_rate(const HostOverhead& overhead, DType dtype, int threads,
                                    bool has_dropout) {
  const AttentionRate* found = nullptr;
  for (const AttentionRate& rate : overhead.attention) {
    if (rate.dtype != dtype || rate.threads != threads) continue;
    if (rate.has_dropout == has_dropout) return &rate;
    if (has_dropout) found = &rate;
  }
  return found;
}

const OperationRate* operation_rate(const HostOverhead& overhead, TimedOperation operation,
                                    DType dtype, int threads) {
  const auto rate = std::ranges::find_if(overhead.operations, [&](const OperationRate& own) {
    return own.operation == operation && own.dtype == dtype && own.threads == threads;
  });
  return rate == overhead.operations.end() ? nullptr : &*rate;
}

Seconds library_time(const HostOverhead& overhead, CollectiveKind kind, DType dtype, Bytes bytes,
                     int ranks, bool has_latency) {
  const LibraryRate* rate = ranks > 1 ? library_rate(overhead, kind, dtype) : nullptr;
  if (rate == nullptr || bus_bytes_per_s(*rate, bytes) <= 0) return 0;
  return (has_latency ? rate->latency : 0) +
         wire_bytes(kind, bytes, ranks) / bus_bytes_per_s(*rate, bytes);
}

void price_pipelined_as_others(HostOverhead& overhead) {
  constexpr auto kEvent = static_cast<std::size_t>(HostEvent::pipelined_collective);
  const LibraryRate* rate = library_rate(overhead, CollectiveKind::all_gather, DType::fp32);
  overhead.seconds[kEvent] =
      overhead.at(HostEvent::collective) + (rate == nullptr ? 0 : rate->latency);
  overhead.uncertainty[kEvent] = std::hypot(overhead.uncertainty_of(HostEvent::collective),
                                            rate == nullptr ? 0 : rate->latency_uncertainty);
}

std::optional<HostOverhead> host_overhead_preset(std::string_view name) {
  if (name == kEarlierNameOfCuda) name = kCudaOverhead;
  const auto* const found = std::find_if(kPresets.begin(), kPresets.end(),
                                         [&](const Preset& preset) { return preset.name == name; });
  if (found == kPresets.end()) return std::nullopt;
  return overhead_of(*found);
}

std::vector<std::string> host_overhead_presets() {
  std::vector<std::string> names;
  names.reserve(kPresets.size());
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::string_view preset_of(const HostOverhead& overhead) {
  HostOverhead numbers = overhead;
  numbers.origin.clear();
  const auto* const found =
      std::find_if(kPresets.begin(), kPresets.end(),
                   [&](const Preset& preset) { return has_numbers_of(preset, numbers); });
  return found == kPresets.end() ? std::string_view() : found->name;
}

// Of cpu-gloo: two models that it was not made of, on two CPU ranks (docs/host-overhead.md). Of
// cuda: two models on one GPU (docs/measurements.md).
std::string preset_cost(const HostOverhead& overhead) {
  const std::string_view preset = preset_of(overhead);
  if (preset == kGlooOverhead) {
    return "its picks were 10 and 18 % slower in DeepSpeed than the fastest configuration, and up "
           "to 30 % in one batch; calibrated picks were never distinguishable from the fastest";
  }
  if (preset != kCudaOverhead) return "";
  return "on an H200 its pick was the fastest of 6 configurations of one model, and for another "
         "model 9 % slower than the fastest of 3, within noise";
}

std::string describe(const HostOverhead& overhead) {
  const std::string_view preset = preset_of(overhead);
  if (!preset.empty()) return concat("preset ", preset);
  return overhead.origin.empty() ? "a profile" : concat("profile ", overhead.origin);
}

}  // namespace dstune
