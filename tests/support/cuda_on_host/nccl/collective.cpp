// Where the streams of a communicator's ranks meet for a collective.
#include <string>

#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/clique.hpp"
#include "tests/support/cuda_on_host/nccl/processes.hpp"
#include "tests/support/cuda_on_host/nccl/reduce.hpp"

namespace cuda_on_host {
namespace {

std::string describe(int rank, const CollectiveCall& call) {
  constexpr const char* kNames[] = {"AllReduce", "Reduce", "ReduceScatter", "AllGather",
                                    "Broadcast"};
  return "rank " + std::to_string(rank) + ": nccl" + kNames[static_cast<int>(call.kind)] + " of " +
         std::to_string(call.count) + " elements of type " + std::to_string(call.type) +
         ", operation " + std::to_string(call.op) + ", root " + std::to_string(call.root);
}

void require_match(const Gathering& gathering, int rank, const CollectiveCall& call) {
  for (const auto& [other, there] : gathering.calls) {
    const bool same = there.kind == call.kind && there.count == call.count &&
                      there.type == call.type && there.op == call.op && there.root == call.root;
    if (!same)
      misuse("collectives do not match: " + describe(other, there) + "; " + describe(rank, call));
  }
}

std::shared_ptr<Gathering> gathering_of(const Rank& rank, std::uint64_t index) {
  const Locked locked;
  auto& place = rank.clique->gatherings[index];
  if (place == nullptr) place = std::make_shared<Gathering>();
  return place;
}

enum class Part { aborted, computes, waits };

/// Meets the others; the last to come computes for all.
Part arrive(const Rank& rank, std::uint64_t index, const CollectiveCall& call,
            Gathering& gathering) {
  const Locked locked;
  if (rank.aborted) return Part::aborted;
  require_match(gathering, rank.rank, call);
  gathering.calls[rank.rank] = call;
  if (static_cast<int>(gathering.calls.size()) < rank.clique->size) return Part::waits;
  gathering.running = true;
  rank.clique->gatherings.erase(index);
  return Part::computes;
}

std::vector<CollectiveCall> calls_of(const Gathering& gathering) {
  const Locked locked;
  std::vector<CollectiveCall> calls;
  for (const auto& [rank, call] : gathering.calls) calls.push_back(call);
  return calls;
}

/// Whether the collective ended: it does not if this rank aborts before all have come.
bool wait(const Rank& rank, Gathering& gathering) {
  Locked locked;
  locked.wait_until([&] { return gathering.done || (rank.aborted && !gathering.running); });
  if (gathering.done) return true;
  gathering.calls.erase(rank.rank);
  return false;
}

void finish(Gathering& gathering) {
  happens_before(&gathering.end);
  const Locked locked;
  gathering.done = true;
  state().changed.notify_all();
}

/// Keeps a gathering alive; its count of owners is not observed.
struct Held {
  explicit Held(std::shared_ptr<Gathering> held) : gathering(std::move(held)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  std::shared_ptr<Gathering> gathering;
  ~Held() {
    const Unobserved unobserved;
    gathering.reset();
  }
};

}  // namespace

void run_collective(const std::shared_ptr<Rank>& rank, std::uint64_t index,
                    const CollectiveCall& call) {
  if (!rank->clique->folder.empty()) return run_collective_of_processes(*rank, index, call);
  const Held held{gathering_of(*rank, index)};
  Gathering& gathering = *held.gathering;
  happens_before(&gathering.arrival);
  switch (arrive(*rank, index, call, gathering)) {
    case Part::aborted:
      return;
    case Part::waits:
      if (!wait(*rank, gathering)) return;
      break;
    case Part::computes:
      happens_after(&gathering.arrival);
      compute(calls_of(gathering));
      finish(gathering);
  }
  happens_after(&gathering.end);
}

}  // namespace cuda_on_host
