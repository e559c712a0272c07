#include "core/search/schedule/worker_info.hpp"

#include "core/base/json.hpp"

namespace dstune {

namespace {

std::string text_at(const json::object& object, const char* key) {
  return std::string(object.at(key).as_string());
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
          {"seen", device.seen}};
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
          object.at("seen").to_number<int>()};
}

}  // namespace

json::object to_json(const WorkerInfo& info) {
  json::array devices;
  for (const DeviceInfo& device : info.devices) devices.push_back(to_json(device));
  return {{"rank", info.rank},
          {"host", info.host},
          {"cores", info.cores},
          {"devices", std::move(devices)},
          {"workers_on_host", info.workers_on_host},
          {"pid", info.pid},
          {"process_space", info.process_space}};
}

WorkerInfo worker_info_from_json(const json::object& object) {
  WorkerInfo info;
  info.rank = object.at("rank").to_number<int>();
  info.host = text_at(object, "host");
  info.cores = object.at("cores").to_number<int>();
  for (const auto& device : object.at("devices").as_array()) {
    info.devices.push_back(device_info_from_json(device.as_object()));
  }
  info.workers_on_host = object.at("workers_on_host").to_number<int>();
  info.pid = object.at("pid").to_number<int>();
  info.process_space = text_at(object, "process_space");
  return info;
}

}  // namespace dstune
