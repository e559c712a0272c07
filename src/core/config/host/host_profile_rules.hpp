// The keys of a profile's file: docs/host-overhead.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/input/key_rules.hpp"

namespace dstune::profile_rules {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

inline constexpr double kLongest = 1e5;  // a tenth of a second: no Python hook takes that long
inline constexpr double kLongestLatency = 1e7;  // ten seconds
inline constexpr double kSlowest = 1e-6;        // a kilobyte per second
inline constexpr double kFastest = 1e6;         // a petabyte per second

// The rules stand in the order of HostEvent.
inline constexpr KeyRule kEventRules[] = {
    within("gradient_hook_us", 0, kLongest),     within("sub_module_hook_us", 0, kLongest),
    within("collective_us", 0, kLongest),        within("optimizer_tensor_us", 0, kLongest),
    within("synchronization_us", 0, kLongest),   within("pipelined_collective_us", 0, kLongest),
    within("gathered_tensor_us", 0, kLongest),   within("operator_forward_us", 0, kLongest),
    within("operator_backward_us", 0, kLongest), within("module_call_us", 0, kLongest),
    within("micro_step_us", 0, kLongest),
};

/// In the place of sub_module_hook_us, of earlier calibrations: kEarlierHook.
inline constexpr KeyRule kEarlierEventRules[] = {within("module_hook_us", 0, kLongest)};

inline constexpr auto kAllEventRules = extended(std::to_array(kEventRules), kEarlierEventRules);
inline constexpr Section kEvents{.rules = kAllEventRules};

inline constexpr std::string_view kLatency = "latency_us";
inline constexpr std::string_view kLatencyUncertainty = "latency_uncertainty_us";
inline constexpr std::string_view kBandwidth = "bus_bandwidth_gb_per_s";
inline constexpr std::string_view kBandwidthUncertainty = "bus_bandwidth_uncertainty_gb_per_s";

inline constexpr std::string_view kLarge = "large";
inline constexpr std::string_view kLargeAbove = "above_bytes";

inline constexpr KeyRule kLargeRules[] = {
    integer(kLargeAbove, 1, std::int64_t{1} << 50U),
    within(kBandwidth, kSlowest, kFastest),
    within(kBandwidthUncertainty, 0, kFastest),
};
inline constexpr Section kLargeSection{.rules = kLargeRules};

inline constexpr KeyRule kRateRules[] = {
    within(kLatency, 0, kLongestLatency),    within(kLatencyUncertainty, 0, kLongestLatency),
    within(kBandwidth, kSlowest, kFastest),  within(kBandwidthUncertainty, 0, kFastest),
    object(kLarge, kLargeSection).or_null(),
};
inline constexpr Section kRate{.rules = kRateRules};

inline constexpr KeyRule kTypeRules[] = {
    object("fp32", kRate).or_null(), object("bf16", kRate).or_null(),
    object("fp16", kRate).or_null(), object("int8", kRate).or_null(),
    object("fp64", kRate).or_null(), object("uint8", kRate).or_null(),
};
inline constexpr Section kTypes{.rules = kTypeRules};

inline constexpr KeyRule kKindRules[] = {
    object("all_reduce", kTypes).or_null(),     object("reduce", kTypes).or_null(),
    object("reduce_scatter", kTypes).or_null(), object("all_gather", kTypes).or_null(),
    object("broadcast", kTypes).or_null(),      object("all_to_all", kTypes).or_null(),
};
inline constexpr Section kKinds{.rules = kKindRules};

inline constexpr std::string_view kThreads = "threads";
inline constexpr std::string_view kFlops = "gflop_per_s";

inline constexpr std::string_view kResult = "result_ns_per_kib";

inline constexpr KeyRule kProductRules[] = {
    integer(kThreads, 1, 1'000'000),
    within(kFlops, kSlowest, kFastest),
    within(kLatency, 0, kLongest),
    within(kResult, 0, kLongest),
};
inline constexpr Section kProduct{.rules = kProductRules};

/// Of what torch computes: by type.
constexpr std::array<KeyRule, 3> of_types(const Section& section) {
  return {object("fp32", section).or_null(), object("bf16", section).or_null(),
          object("fp16", section).or_null()};
}
inline constexpr auto kProductTypeRules = of_types(kProduct);
inline constexpr Section kProductTypes{.rules = kProductTypeRules};

inline constexpr std::string_view kRow = "row_us";

inline constexpr KeyRule kPassRules[] = {
    within(kRow, 0, kLongest),
    within(kFlops, kSlowest, kFastest),
};
inline constexpr Section kPass{.rules = kPassRules};

inline constexpr std::string_view kWithDropout = "with_dropout";

inline constexpr KeyRule kPassesRules[] = {
    object("forward", kPass),
    object("backward", kPass),
};
inline constexpr Section kPasses{.rules = kPassesRules};

inline constexpr KeyRule kAttentionRules[] = {
    integer(kThreads, 1, 1'000'000),
    object("forward", kPass),
    object("backward", kPass),
    object(kWithDropout, kPasses).or_null(),
};
inline constexpr Section kAttention{.rules = kAttentionRules};

inline constexpr auto kAttentionTypeRules = of_types(kAttention);
inline constexpr Section kAttentionTypes{.rules = kAttentionTypeRules};

inline constexpr std::string_view kForwardElement = "forward_ns";
inline constexpr std::string_view kBackwardElement = "backward_ns";

inline constexpr KeyRule kOperationRules[] = {
    integer(kThreads, 1, 1'000'000),
    within(kForwardElement, 0, kLongest),
    within(kBackwardElement, 0, kLongest),
};
inline constexpr Section kOperation{.rules = kOperationRules};

inline constexpr auto kOperationTypeRules = of_types(kOperation);
inline constexpr Section kOperationTypes{.rules = kOperationTypeRules};

// The names of TimedOperation.
inline constexpr KeyRule kOperationsRules[] = {
    object("dropout", kOperationTypes).or_null(),
    object("gelu", kOperationTypes).or_null(),
    object("gelu_tanh", kOperationTypes).or_null(),
    object("gelu_new", kOperationTypes).or_null(),
    object("silu", kOperationTypes).or_null(),
    object("layer_norm", kOperationTypes).or_null(),
    object("rms_norm", kOperationTypes).or_null(),
    object("rotary", kOperationTypes).or_null(),
    object("log_softmax", kOperationTypes).or_null(),
};
inline constexpr Section kOperations{.rules = kOperationsRules};

inline constexpr KeyRule kMeasuredOnRules[] = {
    any_text("host").or_null(),
    any_text("processor").or_null(),
    integer("ranks", 1, 1'000'000).or_null(),
    any_text("deepspeed").or_null(),
    any_text("torch").or_null(),
    any_text("transformers").or_null(),
    any_text("backend").or_null(),
    any_text("communication").or_null(),
    any_text("date").or_null(),
};
inline constexpr Section kMeasuredOn{.rules = kMeasuredOnRules, .other_keys = true};

inline constexpr KeyRule kMoreRules[] = {
    object("uncertainty", kEvents),
    object("collectives", kKinds),
    object("products", kProductTypes),
    object("attention", kAttentionTypes),
    object("operations", kOperations),
    object("measured_on", kMeasuredOn),
    any("about"),
};
inline constexpr auto kProfileRules = extended(kAllEventRules, kMoreRules);
inline constexpr Section kProfile{.rules = kProfileRules};

}  // namespace dstune::profile_rules
