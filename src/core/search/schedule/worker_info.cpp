#include "core/search/schedule/worker_info.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace dstune {

namespace {

json::array to_json(const std::vector<MemoryReserve>& reserves) {
  json::array all;
  for (const MemoryReserve& reserve : reserves) {
    all.push_back(
        {{"what", reserve.what}, {"bytes", reserve.bytes}, {"is_measured", reserve.is_measured}});
  }
  return all;
}

std::vector<MemoryReserve> reserves_from_json(const json::array& all) {
  std::vector<MemoryReserve> reserves;
  for (const auto& value : all) {
    const json::object& reserve = value.as_object();
    reserves.push_back({text_at(reserve, "what"), reserve.at("bytes").to_number<Bytes>(),
                        reserve.at("is_measured").as_bool()});
  }
  return reserves;
}

json::array to_json(const std::vector<MemoryBound>& bounds) {
  json::array all;
  for (const MemoryBound& bound : bounds) {
    all.push_back({{"name", bound.name},
                   {"bytes", bound.bytes},
                   {"used_bytes", bound.used},
                   {"id", bound.id}});
  }
  return all;
}

std::vector<MemoryBound> bounds_from_json(const json::array& all) {
  std::vector<MemoryBound> bounds;
  for (const auto& value : all) {
    const json::object& bound = value.as_object();
    bounds.push_back({text_at(bound, "name"), bound.at("bytes").to_number<Bytes>(),
                      bound.at("used_bytes").to_number<Bytes>(), text_at(bound, "id")});
  }
  return bounds;
}

json::array to_json(const std::vector<CommonSetting>& settings) {
  json::array all;
  for (const CommonSetting& setting : settings) {
    all.push_back(
        {{"name", setting.name}, {"value", setting.value}, {"must_agree", setting.must_agree}});
  }
  return all;
}

std::vector<CommonSetting> common_from_json(const json::array& all) {
  std::vector<CommonSetting> settings;
  for (const auto& value : all) {
    const json::object& setting = value.as_object();
    settings.push_back(
        {text_at(setting, "name"), text_at(setting, "value"), setting.at("must_agree").as_bool()});
  }
  return settings;
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
          {"reserves", to_json(device.reserves)},
          {"bounds", to_json(device.bounds)},
          {"libraries", device.libraries},
          {"fp32_caveat", device.fp32_caveat},
          {"common", to_json(device.common)}};
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
          reserves_from_json(object.at("reserves").as_array()),
          bounds_from_json(object.at("bounds").as_array()),
          text_at(object, "libraries"),
          text_at(object, "fp32_caveat"),
          common_from_json(object.at("common").as_array())};
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
  for (const auto& device : object.at("devices").as_array()) {
    info.devices.push_back(device_info_from_json(device.as_object()));
  }
  info.workers_on_host = object.at("workers_on_host").to_number<int>();
  info.pid = object.at("pid").to_number<int>();
  info.process_space = text_at(object, "process_space");
  info.oom_kills = oom_kills_from_json(object.at("oom_kills").as_object());
  return info;
}

}  // namespace dstune
