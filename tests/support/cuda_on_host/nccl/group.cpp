#include "tests/support/cuda_on_host/nccl/group.hpp"

#include <string>
#include <utility>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/delay.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

using RankPointer = std::shared_ptr<Rank>;

/// What becomes one task of a stream.
struct Item {
  RankPointer rank;
  cudaStream_t stream = nullptr;
  const char* function = nullptr;
  bool hangs = false;
  CollectiveCall call;
  std::vector<Transfer> transfers;  ///< none: a collective
};

struct Group {
  int depth = 0;
  ncclResult_t result = ncclSuccess;
  bool creates = false;
  std::vector<Item> items;
};

Group& group() {
  static thread_local Group mine;
  return mine;
}

void wait_while_hung(const Rank& rank) {
  Locked locked;
  const std::uint64_t releases = state().hang_releases;
  locked.wait_until([&] { return rank.aborted || state().hang_releases != releases; });
}

void run(const Item& item, std::uint64_t index) {
  if (item.hangs) wait_while_hung(*item.rank);
  delay_collective();
  if (item.transfers.empty()) {
    run_collective(item.rank, index, item.call);
  } else {
    run_transfers(item.rank, item.transfers);
  }
  const Locked locked;
  --item.rank->unfinished;
  state().changed.notify_all();
}

/// Counts of owners order threads: only unobserved copies of items are made.
struct Launch {
  Item item;
  std::uint64_t index;
};

void launch(Item item) {
  Launch* owned = nullptr;
  {
    const Locked locked;
    const std::uint64_t index = item.transfers.empty() ? item.rank->collectives++ : 0;
    ++item.rank->unfinished;
    owned = new Launch{std::move(item), index};
  }
  enqueue(owned->item.stream, owned->item.function, [owned] {
    run(owned->item, owned->index);
    const Unobserved unobserved;
    delete owned;
  });
}

/// A non-blocking communicator's work is launched when it is polled.
bool launch_or_keep(Item item) {
  Rank& rank = *item.rank;
  if (rank.blocking) {
    launch(std::move(item));
    return false;
  }
  const Locked locked;
  rank.polled = false;
  rank.to_launch.emplace_back([item = std::move(item)] { launch(item); });
  return true;
}

/// NCCL connects the ranks for a kind of collective when it is first called.
bool take_memory_of_first_use(const Item& item) {
  const Locked locked;
  const std::string kind = item.transfers.empty() ? item.function : "messages";
  if (item.rank->used.contains(kind)) return true;
  if (!take_memory(*item.rank, state().machine.first_use_bytes)) return false;
  item.rank->used.insert(kind);
  return true;
}

ncclResult_t end_group() {
  Group ended = std::exchange(group(), {});
  if (ended.result != ncclSuccess) return ended.result;
  for (const Item& item : ended.items) {
    if (!take_memory_of_first_use(item)) return ncclUnhandledCudaError;
  }
  bool in_progress = ended.creates;
  for (Item& item : ended.items) in_progress |= launch_or_keep(std::move(item));
  const Unobserved unobserved;
  ended.items.clear();
  return in_progress ? ncclInProgress : ncclSuccess;
}

/// All messages of a group that use the same stream are one task.
void add(Item item) {
  auto& items = group().items;
  for (Item& there : items) {
    const bool joins = !item.transfers.empty() && !there.transfers.empty() &&
                       there.rank == item.rank && there.stream == item.stream && !item.hangs;
    if (!joins) continue;
    there.transfers.push_back(item.transfers.front());
    return;
  }
  items.push_back(std::move(item));
}

ncclResult_t check(const Rank& rank) {
  const Locked locked;
  if (rank.aborted) return ncclInvalidUsage;
  return ready(rank) && rank.polled ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t add_item(ncclComm_t comm, cudaStream_t stream, const char* function, Item item) {
  require_stream(stream);
  if (const ncclResult_t wrong = check(*comm->rank); wrong != ncclSuccess)
    return note_result(wrong);
  const CallEffects effects = std::exchange(call_effects(), {});
  item.stream = stream;
  item.function = function;
  item.hangs = effects.hangs;
  item.call.corrupts = effects.corrupts;
  {
    const Locked locked;
    item.rank = comm->rank;
    if (effects.async_error != 0)
      item.rank->async_error = static_cast<ncclResult_t>(effects.async_error);
  }
  add(std::move(item));
  return group_is_open() ? ncclSuccess : end_group();
}

ncclResult_t call_of(const char* function, const std::function<ncclResult_t()>& body) {
  const ncclResult_t result = library_call(function, ncclUnhandledCudaError, body);
  return group_is_open() && result != ncclInProgress ? note_result(result) : result;
}

}  // namespace

bool group_is_open() { return group().depth > 0; }

void note_creation() { group().creates = true; }

ncclResult_t note_result(ncclResult_t result) {
  if (result != ncclSuccess && group_is_open()) group().result = result;
  return result;
}

ncclResult_t add_collective(const char* function, ncclComm_t comm, cudaStream_t stream,
                            CollectiveCall call) {
  return call_of(function, [&] {
    Item item;
    item.call = call;
    return add_item(comm, stream, function, std::move(item));
  });
}

ncclResult_t add_transfer(const char* function, ncclComm_t comm, cudaStream_t stream,
                          const Transfer& transfer) {
  return call_of(function, [&] {
    Item item;
    item.transfers = {transfer};
    return add_item(comm, stream, function, std::move(item));
  });
}

void launch_pending(Rank& rank) {
  std::vector<std::function<void()>> launches;
  {
    const Locked locked;
    launches.swap(rank.to_launch);
  }
  for (const auto& one : launches) one();
  const Unobserved unobserved;
  launches.clear();
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

ncclResult_t ncclGroupStart() {
  begin_call("ncclGroupStart");
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const auto error = begin_call("ncclGroupEnd");
  if (--group().depth > 0) return ncclSuccess;
  if (error)
    group().result = error->cuda ? ncclUnhandledCudaError : static_cast<ncclResult_t>(error->code);
  return end_group();
}
