// Workers and their devices, as they report them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/search/feasibility/machine.hpp"

namespace dstune::test {

constexpr Bytes kGiB = Bytes{1} << 30U;

inline DeviceInfo cpu(Bytes memory, Bytes free_memory) {
  return {"cpu", "Some CPU", memory, free_memory, true, ""};
}

inline DeviceInfo gpu(Bytes memory, const std::string& unusable = "") {
  return {"cuda", "Some GPU", memory, memory, false, unusable};
}

inline WorkerInfo worker(int rank, const std::string& host, int on_host,
                         std::vector<DeviceInfo> devices) {
  WorkerInfo info;
  info.rank = rank;
  info.host = host;
  info.cores = 8;
  info.workers_on_host = on_host;
  info.devices = std::move(devices);
  return info;
}

/// Two workers on a host with a CPU of 100 GiB, one on a host with one of 60 GiB.
inline std::vector<WorkerInfo> three_workers() {
  return {worker(1, "large", 2, {cpu(100 * kGiB, 99 * kGiB)}),
          worker(2, "large", 2, {cpu(100 * kGiB, 99 * kGiB)}),
          worker(3, "small", 1, {cpu(60 * kGiB, 59 * kGiB)})};
}

inline TuningConfig make_config() {
  TuningConfig config;
  config.source = "config.json";
  config.settings.backend = "auto";
  return config;
}

inline WorkerInfo worker_on_one_gpu(int rank) {
  DeviceInfo device = gpu(80 * kGiB);
  device.free_memory = 60 * kGiB;
  device.id = "GPU-a";
  device.seen = 1;
  return worker(rank, "a", 3, {device, cpu(kGiB, kGiB)});
}

}  // namespace dstune::test
