#include "core/config/host/host_profile.hpp"

#include <array>
#include <system_error>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/device/read_enum.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr double kLongest = 1e5;         // a tenth of a second: no Python hook takes that long
constexpr double kLongestLatency = 1e7;  // ten seconds
constexpr double kSlowest = 1e-6;        // a kilobyte per second
constexpr double kFastest = 1e6;         // a petabyte per second
constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

// The rules stand in the order of HostEvent.
constexpr KeyRule kEventRules[] = {
    within("gradient_hook_us", 0, kLongest),    within("module_hook_us", 0, kLongest),
    within("collective_us", 0, kLongest),       within("optimizer_tensor_us", 0, kLongest),
    within("synchronization_us", 0, kLongest),  within("pipelined_collective_us", 0, kLongest),
    within("operator_forward_us", 0, kLongest), within("operator_backward_us", 0, kLongest),
    within("module_call_us", 0, kLongest),
};
constexpr Section kEvents{.rules = kEventRules};

constexpr std::string_view kLatency = "latency_us";
constexpr std::string_view kLatencyUncertainty = "latency_uncertainty_us";
constexpr std::string_view kBandwidth = "bus_bandwidth_gb_per_s";
constexpr std::string_view kBandwidthUncertainty = "bus_bandwidth_uncertainty_gb_per_s";

constexpr std::string_view kLarge = "large";
constexpr std::string_view kLargeAbove = "above_bytes";

constexpr KeyRule kLargeRules[] = {
    integer(kLargeAbove, 1, std::int64_t{1} << 50U),
    within(kBandwidth, kSlowest, kFastest),
    within(kBandwidthUncertainty, 0, kFastest),
};
constexpr Section kLargeSection{.rules = kLargeRules};

constexpr KeyRule kRateRules[] = {
    within(kLatency, 0, kLongestLatency),    within(kLatencyUncertainty, 0, kLongestLatency),
    within(kBandwidth, kSlowest, kFastest),  within(kBandwidthUncertainty, 0, kFastest),
    object(kLarge, kLargeSection).or_null(),
};
constexpr Section kRate{.rules = kRateRules};

constexpr KeyRule kTypeRules[] = {
    object("fp32", kRate).or_null(), object("bf16", kRate).or_null(),
    object("fp16", kRate).or_null(), object("int8", kRate).or_null(),
    object("fp64", kRate).or_null(), object("uint8", kRate).or_null(),
};
constexpr Section kTypes{.rules = kTypeRules};

constexpr KeyRule kKindRules[] = {
    object("all_reduce", kTypes).or_null(),     object("reduce", kTypes).or_null(),
    object("reduce_scatter", kTypes).or_null(), object("all_gather", kTypes).or_null(),
    object("broadcast", kTypes).or_null(),      object("all_to_all", kTypes).or_null(),
};
constexpr Section kKinds{.rules = kKindRules};

constexpr std::string_view kThreads = "threads";
constexpr std::string_view kFlops = "gflop_per_s";

constexpr KeyRule kProductRules[] = {
    integer(kThreads, 1, 1'000'000),
    within(kFlops, kSlowest, kFastest),
    within(kLatency, 0, kLongest),
};
constexpr Section kProduct{.rules = kProductRules};

constexpr KeyRule kProductTypeRules[] = {
    object("fp32", kProduct).or_null(),
    object("bf16", kProduct).or_null(),
    object("fp16", kProduct).or_null(),
};
constexpr Section kProductTypes{.rules = kProductTypeRules};

constexpr std::string_view kRow = "row_us";

constexpr KeyRule kPassRules[] = {
    within(kRow, 0, kLongest),
    within(kFlops, kSlowest, kFastest),
};
constexpr Section kPass{.rules = kPassRules};

constexpr KeyRule kAttentionRules[] = {
    integer(kThreads, 1, 1'000'000),
    object("forward", kPass),
    object("backward", kPass),
};
constexpr Section kAttention{.rules = kAttentionRules};

constexpr KeyRule kAttentionTypeRules[] = {
    object("fp32", kAttention).or_null(),
    object("bf16", kAttention).or_null(),
    object("fp16", kAttention).or_null(),
};
constexpr Section kAttentionTypes{.rules = kAttentionTypeRules};

constexpr KeyRule kMeasuredOnRules[] = {
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
constexpr Section kMeasuredOn{.rules = kMeasuredOnRules, .other_keys = true};

constexpr KeyRule kMoreRules[] = {
    object("uncertainty", kEvents),     object("collectives", kKinds),
    object("products", kProductTypes),  object("attention", kAttentionTypes),
    object("measured_on", kMeasuredOn), any("about"),
};
constexpr auto kProfileRules = extended(std::to_array(kEventRules), kMoreRules);
constexpr Section kProfile{.rules = kProfileRules};

constexpr const char* kAMicrosecond = "a number of microseconds >= 0";
constexpr const char* kASize = "a number of bytes >= 1";
constexpr const char* kACount = "a number of threads >= 1";
constexpr const char* kAGigaflop = "a number of 10^9 operations per second";
constexpr const char* kAGigabyte = "a number of 10^9 bytes per second";

const json::value* find(const json::value& tree, const std::string& pointer) {
  std::error_code none;
  return tree.find_pointer(pointer, none);
}

class ProfileReader {
 public:
  ProfileReader(const json::value& file, Problems& problems)
      : file_(file),
        checked_(check_section(file.get_object(), kProfile, "", problems)),
        problems_(problems) {}

  HostProfile read() {
    HostProfile profile;
    HostOverhead& overhead = profile.overhead;
    const bool has_uncertainties = this->has_uncertainties();
    overhead.seconds = events("");
    overhead.collectives = rates(has_uncertainties);
    overhead.products = products();
    overhead.attention = attention();
    if (has_uncertainties) {
      overhead.uncertainty = events("/uncertainty");
    } else if (overhead != HostOverhead{}) {
      overhead.spread_factor = kAssumedSpread;
    }
    if (!knows(HostEvent::pipelined_collective)) price_pipelined_as_others(overhead);
    profile.measured_on = measured_on();
    return profile;
  }

 private:
  /// The number at `pointer`; 0, and a problem, if it is missing or wrong.
  double number(const std::string& pointer, const char* accepted) {
    if (const auto* value = find(checked_, pointer)) return value->to_number<double>();
    if (find(file_, pointer) == nullptr) {
      problems_.add(pointer, concat("is missing; accepted: ", accepted));
    }
    return 0;
  }

  std::array<Seconds, kHostEvents> events(const std::string& pointer) {
    std::array<Seconds, kHostEvents> seconds{};
    for (std::size_t i = 0; i < kHostEvents; ++i) {
      const auto event = static_cast<HostEvent>(i);
      if (!knows(event)) continue;
      seconds[i] = kMicro * number(child(pointer, kEventRules[i].key), kAMicrosecond);
    }
    return seconds;
  }

  /// Whether the profile has the event, which one of an earlier version may lack.
  bool knows(HostEvent event) const {
    if (event != HostEvent::pipelined_collective && !is_of_pytorch(event)) return true;
    return find(file_, child("", kEventRules[static_cast<std::size_t>(event)].key)) != nullptr;
  }

  /// Calls visit(kind, type, pointer) for every rate that there is.
  template <class Visit>
  void for_each_rate(Visit visit) const {
    for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      for (std::size_t dtype = 0; dtype < kSentDTypes; ++dtype) {
        const auto of_kind = static_cast<CollectiveKind>(kind);
        const auto of_type = static_cast<DType>(dtype);
        const std::string pointer =
            child(child("/collectives", name_of(of_kind)), name_of(of_type));
        const auto* object = find(checked_, pointer);
        if (object != nullptr && object->is_object()) visit(of_kind, of_type, pointer);
      }
    }
  }

  bool has_uncertainties() const {
    bool has_any = find(checked_, "/uncertainty") != nullptr;
    for_each_rate([&](CollectiveKind, DType, const std::string& pointer) {
      has_any = has_any || find(checked_, child(pointer, kLatencyUncertainty)) != nullptr ||
                find(checked_, child(pointer, kBandwidthUncertainty)) != nullptr ||
                find(checked_, child(child(pointer, kLarge), kBandwidthUncertainty)) != nullptr;
    });
    return has_any;
  }

  std::vector<LibraryRate> rates(bool with_uncertainties) {
    std::vector<LibraryRate> rates;
    for_each_rate([&](CollectiveKind kind, DType dtype, const std::string& pointer) {
      LibraryRate& rate = rates.emplace_back(LibraryRate{.kind = kind, .dtype = dtype});
      rate.latency = kMicro * number(child(pointer, kLatency), kAMicrosecond);
      rate.bus_bytes_per_s = kGiga * number(child(pointer, kBandwidth), kAGigabyte);
      const std::string large = child(pointer, kLarge);
      const auto* has_large = find(checked_, large);
      const bool is_there = has_large != nullptr && has_large->is_object();
      if (is_there) {
        rate.large_above = static_cast<Bytes>(number(child(large, kLargeAbove), kASize));
        rate.large_bus_bytes_per_s = kGiga * number(child(large, kBandwidth), kAGigabyte);
      }
      if (!with_uncertainties) return;
      rate.latency_uncertainty =
          kMicro * number(child(pointer, kLatencyUncertainty), kAMicrosecond);
      rate.bus_bytes_per_s_uncertainty =
          kGiga * number(child(pointer, kBandwidthUncertainty), kAGigabyte);
      if (!is_there) return;
      rate.large_bus_bytes_per_s_uncertainty =
          kGiga * number(child(large, kBandwidthUncertainty), kAGigabyte);
    });
    return rates;
  }

  /// Calls visit(type, pointer) for every type of the section.
  template <class Visit>
  void for_each_type(std::string_view section, Visit visit) const {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      const std::string pointer = child(child("", section), name_of(dtype));
      const auto* object = find(checked_, pointer);
      if (object != nullptr && object->is_object()) visit(dtype, pointer);
    }
  }

  int threads(const std::string& pointer) {
    return static_cast<int>(number(child(pointer, kThreads), kACount));
  }

  std::vector<ProductRate> products() {
    std::vector<ProductRate> rates;
    for_each_type("products", [&](DType dtype, const std::string& pointer) {
      const std::string latency = child(pointer, kLatency);
      rates.push_back(
          {dtype, threads(pointer), kGiga * number(child(pointer, kFlops), kAGigaflop),
           find(file_, latency) == nullptr ? 0 : kMicro * number(latency, kAMicrosecond)});
    });
    return rates;
  }

  AttentionTime attention_time(const std::string& pointer) {
    return {kMicro * number(child(pointer, kRow), kAMicrosecond),
            kGiga * number(child(pointer, kFlops), kAGigaflop)};
  }

  std::vector<AttentionRate> attention() {
    std::vector<AttentionRate> rates;
    for_each_type("attention", [&](DType dtype, const std::string& pointer) {
      rates.push_back({dtype, threads(pointer), attention_time(child(pointer, "forward")),
                       attention_time(child(pointer, "backward"))});
    });
    return rates;
  }

  MeasuredOn measured_on() const {
    MeasuredOn on;
    const auto* object = find(checked_, "/measured_on");
    if (object == nullptr) return on;
    const auto read = [&](std::string_view key, std::string& member) {
      const auto* value = object->get_object().if_contains(key);
      if (value != nullptr && value->is_string()) member = printable(value->get_string());
    };
    read("host", on.host);
    read("processor", on.processor);
    read("deepspeed", on.deepspeed);
    read("torch", on.torch);
    read("transformers", on.transformers);
    read("backend", on.backend);
    read("communication", on.communication);
    read("date", on.date);
    const auto* ranks = object->get_object().if_contains("ranks");
    if (ranks != nullptr && !ranks->is_null()) on.ranks = ranks->to_number<int>();
    return on;
  }

  const json::value& file_;
  json::value checked_;
  Problems& problems_;
};

/// "p.json, measured on node1 (Intel Xeon), 2 ranks, gloo, DeepSpeed 0.19.8, torch 2.15.0,
/// 2026-11-23", as far as it is known.
std::string origin_of(const std::filesystem::path& path, const MeasuredOn& on) {
  std::vector<std::string> parts = {printable(path.string())};
  if (!on.host.empty() || !on.processor.empty()) {
    const std::string both =
        on.host.empty() ? on.processor : concat(on.host, " (", on.processor, ")");
    parts.push_back(concat("measured on ", on.processor.empty() ? on.host : both));
  }
  if (on.ranks > 0) parts.push_back(concat(on.ranks, on.ranks == 1 ? " rank" : " ranks"));
  const std::string& library = on.communication.empty() ? on.backend : on.communication;
  if (!library.empty()) parts.push_back(library);
  if (!on.deepspeed.empty()) parts.push_back(concat("DeepSpeed ", on.deepspeed));
  if (!on.torch.empty()) parts.push_back(concat("torch ", on.torch));
  if (!on.date.empty()) parts.push_back(on.date);
  return join(parts, ", ");
}

}  // namespace

std::optional<HostProfile> read_host_profile(const std::filesystem::path& path,
                                             Problems& problems) {
  const auto value = read_json_file(path, "", problems);
  if (!value) return std::nullopt;
  if (!value->is_object()) {
    problems.add("file", concat("is ", describe(*value), "; accepted: an object"));
    return std::nullopt;
  }
  HostProfile profile = ProfileReader(*value, problems).read();
  if (!problems.empty()) return std::nullopt;
  profile.overhead.origin = origin_of(path, profile.measured_on);
  return profile;
}

}  // namespace dstune
