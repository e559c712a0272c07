// A communicator's ranks and what they are at. All under the double's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cuda_on_host/include/nccl.h"

namespace cuda_on_host {

enum class Collective { all_reduce, reduce, reduce_scatter, all_gather, broadcast };

/// One rank's call of a collective. `count` as the call counts.
struct CollectiveCall {
  Collective kind{};
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t op = ncclSum;
  int root = 0;
  bool corrupts = false;  ///< this rank's result is wrong
};

/// The ranks' calls that belong together. Two addresses of it are tokens: of what happened before
/// the ranks arrived, and of the collective's end.
struct Gathering {
  std::map<int, CollectiveCall> calls;  ///< of the ranks that have arrived
  bool running = false;                 ///< all have; one of them computes
  bool done = false;
  alignas(8) char arrival = 0;
  alignas(8) char end = 0;
};

/// A message between two ranks, with its tokens.
struct Mail {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t count = 0;
  ncclDataType_t type{};
  bool taken = false;
  bool done = false;
  alignas(8) char sent = 0;
  alignas(8) char received = 0;
};

struct Clique;

/// One rank of a communicator.
struct Rank {
  std::shared_ptr<Clique> clique;  ///< null until all ranks of a split came
  int rank = 0;
  int device = 0;
  bool blocking = true;
  bool aborted = false;
  ncclResult_t async_error = ncclSuccess;
  std::size_t bytes = 0;         ///< of the device's memory
  std::set<std::string> used{};  ///< kinds of collectives
  std::uint64_t collectives = 0;
  std::uint64_t splits = 0;
  int unfinished = 0;  ///< tasks on streams
  bool finalizing = false;
  bool polled = true;  ///< since the last call of a non-blocking communicator
  std::vector<std::function<void()>> to_launch;  ///< when it is polled, as NCCL's own thread would
};

/// A rank that called ncclCommSplit().
struct SplitCall {
  int color = 0;
  int key = 0;
  std::shared_ptr<Rank> child;
};

struct Clique {
  int size = 0;
  std::set<int> ranks;  ///< that have come
  std::map<std::uint64_t, std::shared_ptr<Gathering>> gatherings;
  std::map<std::uint64_t, std::map<int, SplitCall>> splits;
  std::map<std::pair<int, int>, std::list<std::shared_ptr<Mail>>> mail;  ///< (from, to)
  std::string folder;                     ///< where its ranks meet that are processes; else ""
  std::map<int, std::uint64_t> sent;      ///< messages of a process, by peer
  std::map<int, std::uint64_t> received;  ///< likewise
  std::map<int, std::string> gpus;        ///< what NCCL takes for each rank's GPU
  bool has_shared_gpu = false;            ///< of two ranks, which NCCL refuses

  bool complete() const { return static_cast<int>(ranks.size()) == size; }
  void add(int rank, const std::string& gpu) {
    ranks.insert(rank);
    for (const auto& [other, there] : gpus) has_shared_gpu |= other != rank && there == gpu;
    gpus[rank] = gpu;
  }
};

/// Whether all ranks of its communicator have come, each on a GPU of its own.
bool ready(const Rank& rank);
/// Whether all have come, and another of them is on this one's GPU. Those that are alone on theirs
/// wait for ever.
bool is_duplicate(const Rank& rank);

/// Runs on a stream's thread: meets the other ranks and returns when the collective is over, or
/// when `rank` aborts.
void run_collective(const std::shared_ptr<Rank>& rank, std::uint64_t index,
                    const CollectiveCall& call);

/// A message to send or to receive.
struct Transfer {
  bool sends = false;
  void* data = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  int peer = 0;
};

/// Likewise: all messages of a group at once.
void run_transfers(const std::shared_ptr<Rank>& rank, const std::vector<Transfer>& transfers);

std::size_t size_of(ncclDataType_t type);

/// Takes memory of its device for a rank, as long as it lives. @returns whether there was as much
bool take_memory(Rank& rank, std::size_t bytes);

}  // namespace cuda_on_host

struct ncclComm {
  std::shared_ptr<cuda_on_host::Rank> rank;
};
