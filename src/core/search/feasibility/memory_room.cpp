#include "core/search/feasibility/memory_room.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"

namespace dstune {

namespace {

// The share of a host's memory for experiments: the operating system, MPI and this program itself
// need the rest.
constexpr double kUsableMemory = 0.85;

// What a process takes beside its experiment. Measured were 20 MiB that the BLAS and the C library
// keep and 25 MiB of MPI; and 220 MiB of addresses, most of which are never touched.
constexpr Bytes kBeside = Bytes{64} << 20U;
constexpr Bytes kAddressesBeside = Bytes{320} << 20U;

Bytes less(Bytes whole, Bytes part) { return whole - std::min(whole, part); }

bool is_under(const WorkerInfo& worker, const std::string& host, const std::string& id) {
  return worker.host == host &&
         std::any_of(worker.devices.begin(), worker.devices.end(), [&](const DeviceInfo& device) {
           return std::any_of(device.bounds.begin(), device.bounds.end(),
                              [&](const MemoryBound& bound) { return bound.id == id; });
         });
}

MemoryRoom room_of(const MemoryBound& bound, const std::string& host,
                   const std::vector<WorkerInfo>& workers) {
  MemoryRoom room{bound.name, bound.bytes, bound.free(), kBeside, 1};
  if (bound.id.empty()) {
    room.beside = kAddressesBeside;
    return room;
  }
  const auto sharers = std::count_if(workers.begin(), workers.end(), [&](const auto& worker) {
    return is_under(worker, host, bound.id);
  });
  room.sharers = std::max(static_cast<int>(sharers), 1);
  return room;
}

std::string of_workers(int count) { return concat(count, count == 1 ? " worker" : " workers"); }

}  // namespace

Bytes MemoryRoom::nominal() const {
  const auto all = static_cast<Bytes>(sharers);
  const auto most = static_cast<Bytes>(kUsableMemory * static_cast<double>(bytes));
  return std::min(most, less(bytes, (all + 1) * beside)) / all;
}

Bytes MemoryRoom::usable() const {
  const auto all = static_cast<Bytes>(sharers);
  return std::min(nominal(), less(free, all * beside) / all);
}

std::string MemoryRoom::describe() const {
  const Bytes usual =
      static_cast<Bytes>(kUsableMemory * static_cast<double>(bytes)) / static_cast<Bytes>(sharers);
  if (usable() == usual) {
    return concat("85 % of the ", format_bytes(bytes), " of ", name, ", for ", of_workers(sharers));
  }
  return concat(format_bytes(free), " of the ", format_bytes(bytes), " of ", name,
                " are free, for ", of_workers(sharers), " that each take ", format_bytes(beside),
                " besides their experiments");
}

std::vector<MemoryRoom> memory_rooms(const WorkerInfo& worker, const DeviceInfo& device,
                                     const std::vector<WorkerInfo>& workers) {
  std::vector<MemoryRoom> rooms = {{concat("host ", worker.host), device.memory, device.free_memory,
                                    kBeside, std::max(worker.workers_on_host, 1)}};
  for (const MemoryBound& bound : device.bounds) {
    rooms.push_back(room_of(bound, worker.host, workers));
  }
  return rooms;
}

MemoryRoom narrowest_room(const std::vector<MemoryRoom>& rooms) {
  return *std::min_element(rooms.begin(), rooms.end(),
                           [](const auto& a, const auto& b) { return a.usable() < b.usable(); });
}

std::vector<std::string> exceeded_rooms(const std::string& whose, Bytes limit, bool against_free,
                                        const std::string& backend,
                                        const std::vector<WorkerInfo>& workers) {
  std::vector<std::string> lines;
  std::set<std::string> said;
  for (const WorkerInfo& worker : workers) {
    const DeviceInfo* device = find_device(worker.devices, backend);
    if (device == nullptr || !device->is_shared) continue;
    const auto part = [&](const MemoryRoom& room) {
      return (against_free ? room.free : room.bytes) / static_cast<Bytes>(room.sharers);
    };
    const auto rooms = memory_rooms(worker, *device, workers);
    const auto worst =
        *std::min_element(rooms.begin(), rooms.end(),
                          [&](const auto& a, const auto& b) { return part(a) < part(b); });
    if (limit <= part(worst)) continue;
    std::string line = concat(whose, " ", format_bytes(limit), " on each of ",
                              of_workers(worst.sharers), " of ", worker.host, ", more than the ",
                              format_bytes(against_free ? worst.free : worst.bytes),
                              against_free ? " that are free in " : " of ", worst.name);
    if (said.insert(line).second) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace dstune
