// How NCCL's communicators come to be: from a unique id, or as parts of another.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/group.hpp"
#include "tests/support/cuda_on_host/nccl/processes.hpp"

namespace cuda_on_host {
namespace {

/// Communicators that some ranks have joined, by their unique ids.
std::map<std::string, std::shared_ptr<Clique>>& joined() {
  static auto& cliques = *new std::map<std::string, std::shared_ptr<Clique>>;
  return cliques;
}

bool is_blocking(const ncclConfig_t* config, bool otherwise) {
  const bool said = config != nullptr && config->blocking != NCCL_CONFIG_UNDEF_INT;
  return said ? config->blocking != 0 : otherwise;
}

/// A blocking call returns when all ranks have come.
ncclResult_t end_creation(Locked& locked, const Rank& rank) {
  if (!rank.blocking) return ncclInProgress;
  locked.wait_until([&] { return ready(rank) || is_duplicate(rank) || rank.aborted; });
  if (is_duplicate(rank)) return ncclInvalidUsage;
  return ready(rank) ? ncclSuccess : ncclInternalError;
}

/// Instances of one GPU, which NCCL takes for the same unless it is told to tell them apart.
bool are_one_gpu() {
  const char* const tells_apart = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool are_instances = state().machine.name.find(" MIG ") != std::string::npos;
  return are_instances && (tells_apart == nullptr || std::string(tells_apart) != "1");
}

/// NCCL's name of the calling thread's GPU: two ranks with the same one are on one GPU. All
/// processes are on one host, unless NCCL_HOSTID says otherwise, as for NCCL.
std::string own_gpu() {
  const char* const host = std::getenv("NCCL_HOSTID");
  return std::string(host == nullptr ? "" : host) + ":" +
         (are_one_gpu() ? "MIG" : std::to_string(current_device()));
}

std::shared_ptr<Clique> clique_of(int size, const ncclUniqueId& id, int number) {
  if (const std::string folder = folder_of_processes(); !folder.empty()) {
    return join_processes(folder + "/" + id.internal, size, number, own_gpu());
  }
  auto& clique = joined()[std::string(id.internal, sizeof id.internal)];
  if (clique == nullptr) {
    clique = std::make_shared<Clique>();
    clique->size = size;
  }
  return clique;
}

std::shared_ptr<Rank> join(int size, const ncclUniqueId& id, int number) {
  auto rank = std::make_shared<Rank>();
  rank->rank = number;
  rank->device = current_device();
  rank->clique = clique_of(size, id, number);
  return rank;
}

ncclResult_t create(ncclComm_t* comm, int size, const ncclUniqueId& id, int number,
                    const ncclConfig_t* config) {
  if (number < 0 || number >= size) return ncclInvalidArgument;
  Locked locked;
  auto rank = join(size, id, number);
  rank->blocking = is_blocking(config, true);
  if (!take_memory(*rank, state().machine.communicator_bytes)) return ncclUnhandledCudaError;
  if (call_effects().hangs) {  // it never meets the others
    rank->clique = std::make_shared<Clique>();
    rank->clique->size = size + 1;
  }
  rank->clique->add(number, own_gpu());
  if (rank->clique->complete()) joined().erase(std::string(id.internal, sizeof id.internal));
  ++state().communicators;
  *comm = new ncclComm{rank};
  state().changed.notify_all();
  if (!group_is_open()) return end_creation(locked, *rank);
  note_creation();
  return ncclSuccess;
}

/// All ranks of the parent have come: those of a color, ordered by key and rank, are a
/// communicator.
void divide(const std::map<int, SplitCall>& calls) {
  std::map<int, std::vector<std::pair<int, SplitCall>>> colors;
  for (const auto& [parent_rank, call] : calls) {
    if (call.child != nullptr) colors[call.color].emplace_back(parent_rank, call);
  }
  for (auto& [color, members] : colors) {
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.second.key < b.second.key; });
    auto clique = std::make_shared<Clique>();
    clique->size = static_cast<int>(members.size());
    for (const auto& [parent_rank, call] : members) {
      call.child->rank = static_cast<int>(clique->ranks.size());
      call.child->clique = clique;
      clique->ranks.insert(call.child->rank);
    }
  }
  state().changed.notify_all();
}

std::shared_ptr<Rank> make_child(const Rank& parent, const ncclConfig_t* config) {
  auto child = std::make_shared<Rank>();
  child->device = parent.device;
  child->blocking = is_blocking(config, parent.blocking);
  const bool shares = config != nullptr && config->splitShare == 1;
  return take_memory(*child, shares ? 0 : state().machine.communicator_bytes) ? child : nullptr;
}

ncclResult_t split(Rank& parent, int color, int key, ncclComm_t* newcomm,
                   const ncclConfig_t* config) {
  Locked locked;
  *newcomm = nullptr;
  if (!ready(parent) || !parent.polled) return ncclInvalidArgument;
  std::shared_ptr<Rank> child;
  if (color != NCCL_SPLIT_NOCOLOR) {
    child = make_child(parent, config);
    if (child == nullptr) return ncclUnhandledCudaError;
    ++state().communicators;
    *newcomm = new ncclComm{child};
  }
  const std::uint64_t index = parent.splits++;
  if (!parent.clique->folder.empty()) {
    locked.lock().unlock();
    split_processes(parent, index, color, key, child.get());
    return child == nullptr ? ncclSuccess : ncclInProgress;
  }
  if (!call_effects().hangs) parent.clique->splits[index][parent.rank] = {color, key, child};
  auto& calls = parent.clique->splits[index];
  if (static_cast<int>(calls.size()) == parent.clique->size) {
    divide(calls);
    parent.clique->splits.erase(index);
  }
  if (child == nullptr) return ncclSuccess;
  if (!group_is_open()) return end_creation(locked, *child);
  note_creation();
  return ncclSuccess;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return library_call("ncclGetUniqueId", ncclUnhandledCudaError, [&] {
    static std::uint64_t count = 0;
    const Locked locked;
    *uniqueId = {};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string name =
        std::to_string(::getpid()) + "-" + std::to_string(now) + "-" + std::to_string(++count);
    name.copy(uniqueId->internal, sizeof uniqueId->internal - 1);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return note_result(library_call("ncclCommInitRankConfig", ncclUnhandledCudaError,
                                  [&] { return create(comm, nranks, commId, rank, config); }));
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return note_result(library_call("ncclCommInitRank", ncclUnhandledCudaError,
                                  [&] { return create(comm, nranks, commId, rank, nullptr); }));
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return note_result(library_call("ncclCommSplit", ncclUnhandledCudaError,
                                  [&] { return split(*comm->rank, color, key, newcomm, config); }));
}
