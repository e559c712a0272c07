#include "core/search/schedule/worker_info.hpp"

#include <algorithm>
#include <string_view>

#include <boost/json/value_from.hpp>

#include "core/base/json.hpp"

namespace dstune {

namespace {

json::object to_json(const MemoryReserve& reserve) {
  return {{"what", reserve.what},
          {"bytes", reserve.bytes},
          {"is_measured", reserve.is_measured},
          {"only_if_exact", reserve.only_if_exact}};
}

MemoryReserve reserve_from_json(const json::object& reserve) {
  return {text_at(reserve, "what"), reserve.at("bytes").to_number<Bytes>(),
          reserve.at("is_measured").as_bool(), reserve.at("only_if_exact").as_bool()};
}

json::object to_json(const MemoryBound& bound) {
  return {
      {"name", bound.name}, {"bytes", bound.bytes}, {"used_bytes", bound.used}, {"id", bound.id}};
}

MemoryBound bound_from_json(const json::object& bound) {
  return {text_at(bound, "name"), bound.at("bytes").to_number<Bytes>(),
          bound.at("used_bytes").to_number<Bytes>(), text_at(bound, "id")};
}

json::object to_json(const CommonSetting& setting) {
  return {{"name", setting.name}, {"value", setting.value}, {"must_agree", setting.must_agree}};
}

CommonSetting common_from_json(const json::object& setting) {
  return {text_at(setting, "name"), text_at(setting, "value"), setting.at("must_agree").as_bool()};
}

template <class Item>
json::array all_to_json(const std::vector<Item>& items) {
  json::array all;
  for (const Item& item : items) all.push_back(to_json(item));
  return all;
}

template <class Item>
std::vector<Item> all_from_json(const json::object& object, std::string_view key,
                                Item (*from_json)(const json::object&)) {
  std::vector<Item> items;
  for (const auto& value : object.at(key).as_array()) items.push_back(from_json(value.as_object()));
  return items;
}

json::object to_json(const DeviceInfo& device) {
  return {{"backend", device.backend},
          {"name", device.name},
          {"memory_bytes", device.memory},
          {"free_memory_bytes", device.free_memory},
          {"is_shared", device.is_shared},
          {"unusable", device.unusable},
          {"host_overhead", device.host_overhead},
          {"id", device.id},
          {"index", device.index},
          {"seen", device.seen},
          {"limit_is_free_memory", device.limit_is_free_memory},
          {"reserves", all_to_json(device.reserves)},
          {"bounds", all_to_json(device.bounds)},
          {"libraries", device.libraries},
          {"fp32_caveat", device.fp32_caveat},
          {"common", all_to_json(device.common)},
          {"product_workspace", to_json(device.product_workspace)},
          {"found", json::value_from(device.found)},
          {"is_mig_instance", device.is_mig_instance},
          {"trains_in_bf16", device.trains_in_bf16}};
}

DeviceInfo device_info_from_json(const json::object& object) {
  return {text_at(object, "backend"),
          text_at(object, "name"),
          object.at("memory_bytes").to_number<Bytes>(),
          object.at("free_memory_bytes").to_number<Bytes>(),
          object.at("is_shared").as_bool(),
          text_at(object, "unusable"),
          text_at(object, "host_overhead"),
          text_at(object, "id"),
          object.at("index").to_number<int>(),
          object.at("seen").to_number<int>(),
          object.at("limit_is_free_memory").as_bool(),
          all_from_json(object, "reserves", reserve_from_json),
          all_from_json(object, "bounds", bound_from_json),
          text_at(object, "libraries"),
          text_at(object, "fp32_caveat"),
          all_from_json(object, "common", common_from_json),
          product_workspace_from_json(object.at("product_workspace").as_object()),
          json::value_to<std::vector<std::string>>(object.at("found")),
          object.at("is_mig_instance").as_bool(),
          object.at("trains_in_bf16").as_bool()};
}

}  // namespace

const DeviceInfo* find_device(const std::vector<DeviceInfo>& devices, const std::string& backend) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
    return device.backend == backend;
  });
  return found == devices.end() ? nullptr : &*found;
}

json::object to_json(const WorkerInfo& info) {
  json::array devices;
  for (const DeviceInfo& device : info.devices) devices.push_back(to_json(device));
  return {{"rank", info.rank},
          {"host", info.host},
          {"cores", info.cores},
          {"devices", std::move(devices)},
          {"workers_on_host", info.workers_on_host},
          {"pid", info.pid},
          {"process_space", info.process_space},
          {"oom_kills", to_json(info.oom_kills)}};
}

WorkerInfo worker_info_from_json(const json::object& object) {
  WorkerInfo info;
  info.rank = object.at("rank").to_number<int>();
  info.host = text_at(object, "host");
  info.cores = object.at("cores").to_number<int>();
  info.devices = all_from_json(object, "devices", device_info_from_json);
  info.workers_on_host = object.at("workers_on_host").to_number<int>();
  info.pid = object.at("pid").to_number<int>();
  info.process_space = text_at(object, "process_space");
  info.oom_kills = oom_kills_from_json(object.at("oom_kills").as_object());
  return info;
}

}  // namespace dstune
