// The JSON form of a profile in messages and journals; files of users are host_profile.cpp's.
#include <array>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/read_enum.hpp"

namespace dstune {

namespace {

json::object to_object(const LibraryRate& rate) {
  json::object object{{"kind", name_of(rate.kind)},
                      {"dtype", name_of(rate.dtype)},
                      {"latency_s", rate.latency},
                      {"latency_uncertainty_s", rate.latency_uncertainty},
                      {"bus_bytes_per_s", rate.bus_bytes_per_s},
                      {"bus_bytes_per_s_uncertainty", rate.bus_bytes_per_s_uncertainty}};
  if (rate.large_above > 0) {
    object["large_above_bytes"] = rate.large_above;
    object["large_bus_bytes_per_s"] = rate.large_bus_bytes_per_s;
    object["large_bus_bytes_per_s_uncertainty"] = rate.large_bus_bytes_per_s_uncertainty;
  }
  return object;
}

json::object to_object(const ProductRate& rate) {
  json::object object{
      {"dtype", name_of(rate.dtype)}, {"threads", rate.threads}, {"flops_per_s", rate.flops_per_s}};
  if (rate.latency > 0) object["latency_s"] = rate.latency;
  if (rate.result_byte > 0) object["result_byte_s"] = rate.result_byte;
  return object;
}

json::object to_object(const AttentionTime& time) {
  return {{"row_s", time.row}, {"flops_per_s", time.flops_per_s}};
}

json::object to_object(const AttentionRate& rate) {
  json::object object{{"dtype", name_of(rate.dtype)},
                      {"threads", rate.threads},
                      {"forward", to_object(rate.forward)},
                      {"backward", to_object(rate.backward)}};
  if (rate.has_dropout) object["has_dropout"] = true;
  return object;
}

json::object to_object(const OperationRate& rate) {
  return {{"operation", name_of(rate.operation)},
          {"dtype", name_of(rate.dtype)},
          {"threads", rate.threads},
          {"forward_s", rate.forward},
          {"backward_s", rate.backward}};
}

constexpr std::string_view kWhere = "host overhead";

LibraryRate library_rate_from(const json::object& object) {
  const auto number = [&](std::string_view key) { return object.at(key).to_number<double>(); };
  LibraryRate rate{read_enum<CollectiveKind>(object, "kind", kCollectiveKinds, kWhere),
                   read_enum<DType>(object, "dtype", kSentDTypes, kWhere),
                   number("latency_s"),
                   number("latency_uncertainty_s"),
                   number("bus_bytes_per_s"),
                   number("bus_bytes_per_s_uncertainty")};
  if (object.contains("large_above_bytes")) {
    rate.large_above = object.at("large_above_bytes").to_number<Bytes>();
    rate.large_bus_bytes_per_s = number("large_bus_bytes_per_s");
    rate.large_bus_bytes_per_s_uncertainty = number("large_bus_bytes_per_s_uncertainty");
  }
  return rate;
}

ProductRate product_rate_from(const json::object& object) {
  const auto rare = [&](std::string_view key) {
    const auto* value = object.if_contains(key);
    return value == nullptr ? 0 : value->to_number<double>();
  };
  return {read_enum<DType>(object, "dtype", kSentDTypes, kWhere),
          object.at("threads").to_number<int>(), object.at("flops_per_s").to_number<double>(),
          rare("latency_s"), rare("result_byte_s")};
}

AttentionTime attention_time_from(const json::object& object) {
  return {object.at("row_s").to_number<double>(), object.at("flops_per_s").to_number<double>()};
}

AttentionRate attention_rate_from(const json::object& object) {
  return {read_enum<DType>(object, "dtype", kSentDTypes, kWhere),
          object.at("threads").to_number<int>(),
          attention_time_from(object.at("forward").as_object()),
          attention_time_from(object.at("backward").as_object()),
          object.contains("has_dropout") && object.at("has_dropout").as_bool()};
}

OperationRate operation_rate_from(const json::object& object) {
  return {read_enum<TimedOperation>(object, "operation", kTimedOperations, kWhere),
          read_enum<DType>(object, "dtype", kSentDTypes, kWhere),
          object.at("threads").to_number<int>(), object.at("forward_s").to_number<double>(),
          object.at("backward_s").to_number<double>()};
}

/// rates = read(each of the array `key`), if there is one
template <class Rate>
void read_rates(const json::object& object, std::string_view key, Rate (*read)(const json::object&),
                std::vector<Rate>& rates) {
  const auto* array = object.if_contains(key);
  if (array == nullptr) return;
  for (const json::value& rate : array->as_array()) rates.push_back(read(rate.as_object()));
}

template <class Rate>
json::array to_array(const std::vector<Rate>& rates) {
  json::array array;
  for (const Rate& rate : rates) array.push_back(to_object(rate));
  return array;
}

json::object by_event(const std::array<Seconds, kHostEvents>& values) {
  json::object object;
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    object[name_of(static_cast<HostEvent>(i))] = values[i];
  }
  return object;
}

std::array<Seconds, kHostEvents> events_from(const json::object& object) {
  std::array<Seconds, kHostEvents> values{};
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    const auto event = static_cast<HostEvent>(i);
    const bool is_there = object.contains(name_of(event));
    if (is_optional(event) && !is_there) continue;
    // As those versions counted it, which tells their results from those of now.
    const bool is_earlier = event == HostEvent::sub_module_hook && !is_there;
    values[i] = object.at(is_earlier ? kEarlierHook : name_of(event)).to_number<double>();
  }
  return values;
}

}  // namespace

json::object to_json(const HostOverhead& overhead) {
  json::object object = by_event(overhead.seconds);
  // Rare members are left out: older journals do not know them.
  if (overhead.uncertainty != decltype(overhead.uncertainty){}) {
    object["uncertainty"] = by_event(overhead.uncertainty);
  }
  object["spread_factor"] = overhead.spread_factor;
  if (!overhead.collectives.empty()) object["collectives"] = to_array(overhead.collectives);
  if (!overhead.products.empty()) object["products"] = to_array(overhead.products);
  if (!overhead.attention.empty()) object["attention"] = to_array(overhead.attention);
  if (!overhead.operations.empty()) object["operations"] = to_array(overhead.operations);
  if (!overhead.origin.empty()) object["origin"] = overhead.origin;
  return object;
}

HostOverhead host_overhead_from_json(const json::object& object) {
  HostOverhead overhead;
  overhead.seconds = events_from(object);
  if (overhead.seconds != decltype(overhead.seconds){}) overhead.spread_factor = kAssumedSpread;
  if (const auto* uncertainty = object.if_contains("uncertainty")) {
    overhead.uncertainty = events_from(uncertainty->as_object());
  }
  if (const auto* factor = object.if_contains("spread_factor")) {
    overhead.spread_factor = factor->to_number<double>();
  }
  read_rates(object, "collectives", library_rate_from, overhead.collectives);
  read_rates(object, "products", product_rate_from, overhead.products);
  read_rates(object, "attention", attention_rate_from, overhead.attention);
  read_rates(object, "operations", operation_rate_from, overhead.operations);
  if (!object.contains(name_of(HostEvent::pipelined_collective))) {
    price_pipelined_as_others(overhead);
  }
  if (const auto* origin = object.if_contains("origin")) overhead.origin = origin->as_string();
  return overhead;
}

}  // namespace dstune
