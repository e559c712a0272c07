#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/device/rates/machine_rates.hpp"
#include "core/device/read_enum.hpp"

namespace dstune {
namespace {

constexpr std::string_view kWhere = "machine rates";

json::object to_json(const CollectiveRate& rate) {
  return {{"latency_s", rate.latency}, {"bytes_per_s", rate.bytes_per_s}};
}

CollectiveRate rate_from_json(const json::object& object) {
  return {.latency = object.at("latency_s").to_number<double>(),
          .bytes_per_s = object.at("bytes_per_s").to_number<double>()};
}

DType dtype_from_json(const json::object& object) {
  return read_enum<DType>(object, "dtype", kSentDTypes, kWhere);
}

json::array matrices_to_json(const MachineRates& rates) {
  json::array matrices;
  for (const MatrixRate& matrix : rates.matrices) {
    matrices.push_back(json::object{{"rows", matrix.shape.rows},
                                    {"cols", matrix.shape.cols},
                                    {"inner", matrix.shape.inner},
                                    {"flops_per_s", matrix.flops_per_s}});
  }
  return matrices;
}

MatrixRate matrix_from_json(const json::object& matrix) {
  return {.shape = {.rows = matrix.at("rows").to_number<std::int64_t>(),
                    .cols = matrix.at("cols").to_number<std::int64_t>(),
                    .inner = matrix.at("inner").to_number<std::int64_t>()},
          .flops_per_s = matrix.at("flops_per_s").to_number<double>()};
}

json::array messages_to_json(const MachineRates& rates) {
  json::array messages;
  for (const MessageRate& known : rates.messages) {
    json::object message = to_json(known.message);
    for (auto& member : to_json(known.rate)) message.insert(member);
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

json::object to_json(const GroupMessage& message) {
  return {{"kind", name_of(message.kind)},
          {"dtype", name_of(message.dtype)},
          {"ranks", message.ranks},
          {"spacing", message.spacing}};
}

GroupMessage group_message_from_json(const json::object& object) {
  return {.kind = read_enum<CollectiveKind>(object, "kind", kCollectiveKinds, kWhere),
          .dtype = dtype_from_json(object),
          .ranks = object.at("ranks").to_number<int>(),
          .spacing = object.at("spacing").to_number<int>()};
}

json::object to_json(const MachineRates& rates) {
  json::object collectives;
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    collectives[name_of(static_cast<CollectiveKind>(kind))] = to_json(rates.collectives[kind]);
  }
  json::object object = {
      {"overlaps", rates.overlaps},       {"dtype", name_of(rates.dtype)},
      {"flops_per_s", rates.flops_per_s}, {"copy_bytes_per_s", rates.copy_bytes_per_s},
      {"launch_s", rates.launch},         {"matrices", matrices_to_json(rates)},
      {"collectives", collectives},       {"messages", messages_to_json(rates)}};
  if (rates.host) object["host"] = to_json(*rates.host);
  return object;
}

MachineRates machine_rates_from_json(const json::object& object) {
  MachineRates rates;
  rates.overlaps = object.at("overlaps").as_bool();
  if (object.contains("dtype")) rates.dtype = dtype_from_json(object);
  rates.flops_per_s = object.at("flops_per_s").to_number<double>();
  rates.copy_bytes_per_s = object.at("copy_bytes_per_s").to_number<double>();
  rates.launch = object.at("launch_s").to_number<double>();
  for (const json::value& matrix : object.at("matrices").as_array()) {
    rates.matrices.push_back(matrix_from_json(matrix.as_object()));
  }
  const json::object& collectives = object.at("collectives").as_object();
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    rates.collectives[kind] =
        rate_from_json(collectives.at(name_of(static_cast<CollectiveKind>(kind))).as_object());
  }
  if (const auto* messages = object.if_contains("messages")) {
    for (const json::value& value : messages->as_array()) {
      const json::object& message = value.as_object();
      rates.messages.push_back({group_message_from_json(message), rate_from_json(message)});
    }
  }
  if (const auto* host = object.if_contains("host")) {
    rates.host = host_rates_from_json(host->as_object());
  }
  return rates;
}

}  // namespace dstune
