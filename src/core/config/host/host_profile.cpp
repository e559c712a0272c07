#include "core/config/host/host_profile.hpp"

#include <array>
#include <system_error>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/config/host/host_profile_rules.hpp"
#include "core/device/read_enum.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"

namespace dstune {

namespace {

using namespace profile_rules;  // NOLINT(google-build-using-namespace): the file's own table

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;
constexpr double kGiga = 1e9;

constexpr const char* kAMicrosecond = "a number of microseconds >= 0";
constexpr const char* kANanosecond = "a number of nanoseconds >= 0";
constexpr const char* kASize = "a number of bytes >= 1";
constexpr const char* kACount = "a number of threads >= 1";
constexpr const char* kAGigaflop = "a number of 10^9 operations per second";
constexpr const char* kAGigabyte = "a number of 10^9 bytes per second";

const json::value* find(const json::value& tree, const std::string& pointer) {
  std::error_code none;
  return tree.find_pointer(pointer, none);
}

constexpr auto kHook = static_cast<std::size_t>(HostEvent::sub_module_hook);

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
    overhead.operations = operations();
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
      if (i == kHook && has_earlier_hooks(pointer)) {
        const std::string place = child(pointer, kEarlierEventRules[0].key);
        seconds[i] = kMicro * number(place, kAMicrosecond) / kHooksPerEarlier;
        continue;
      }
      seconds[i] = kMicro * number(child(pointer, kEventRules[i].key), kAMicrosecond);
    }
    return seconds;
  }

  /// Whether hooks were counted as earlier calibrations did.
  bool has_earlier_hooks(const std::string& pointer) const {
    return find(file_, child(pointer, kEventRules[kHook].key)) == nullptr &&
           find(file_, child(pointer, kEarlierEventRules[0].key)) != nullptr;
  }

  /// Whether the profile has the event.
  bool knows(HostEvent event) const {
    if (!is_optional(event)) return true;
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
        if (has_object(pointer)) visit(of_kind, of_type, pointer);
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
      const bool is_there = has_object(large);
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

  bool has_object(const std::string& pointer) const {
    const auto* object = find(checked_, pointer);
    return object != nullptr && object->is_object();
  }

  /// Calls visit(type, pointer) for every type of the section at `section`.
  template <class Visit>
  void for_each_type(const std::string& section, Visit visit) const {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      const std::string pointer = child(section, name_of(dtype));
      if (has_object(pointer)) visit(dtype, pointer);
    }
  }

  int threads(const std::string& pointer) {
    return static_cast<int>(number(child(pointer, kThreads), kACount));
  }

  std::vector<ProductRate> products() {
    std::vector<ProductRate> rates;
    for_each_type("/products", [&](DType dtype, const std::string& pointer) {
      const auto rare = [&](std::string_view key, const char* accepted) {
        const std::string place = child(pointer, key);
        return find(file_, place) == nullptr ? 0 : number(place, accepted);
      };
      rates.push_back({dtype, threads(pointer), kGiga * number(child(pointer, kFlops), kAGigaflop),
                       kMicro * rare(kLatency, kAMicrosecond),
                       kNano / 1024 * rare(kResult, kANanosecond)});
    });
    return rates;
  }

  AttentionTime attention_time(const std::string& pointer) {
    return {kMicro * number(child(pointer, kRow), kAMicrosecond),
            kGiga * number(child(pointer, kFlops), kAGigaflop)};
  }

  std::vector<AttentionRate> attention() {
    std::vector<AttentionRate> rates;
    const auto add = [&](DType dtype, int threads, const std::string& pointer, bool has_dropout) {
      rates.push_back({dtype, threads, attention_time(child(pointer, "forward")),
                       attention_time(child(pointer, "backward")), has_dropout});
    };
    for_each_type("/attention", [&](DType dtype, const std::string& pointer) {
      const int threads = this->threads(pointer);
      add(dtype, threads, pointer, false);
      const std::string with_dropout = child(pointer, kWithDropout);
      if (has_object(with_dropout)) add(dtype, threads, with_dropout, true);
    });
    return rates;
  }

  std::vector<OperationRate> operations() {
    std::vector<OperationRate> rates;
    for (std::size_t i = 0; i < kTimedOperations; ++i) {
      const auto operation = static_cast<TimedOperation>(i);
      const std::string section = child("/operations", name_of(operation));
      for_each_type(section, [&](DType dtype, const std::string& pointer) {
        rates.push_back({operation, dtype, threads(pointer),
                         kNano * number(child(pointer, kForwardElement), kANanosecond),
                         kNano * number(child(pointer, kBackwardElement), kANanosecond)});
      });
    }
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
