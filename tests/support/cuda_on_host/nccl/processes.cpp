#include "tests/support/cuda_on_host/nccl/processes.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <tuple>

#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/reduce.hpp"

namespace cuda_on_host {
namespace {

namespace fs = std::filesystem;

using Contents = std::vector<char>;

std::string join(const std::string& folder, const char* kind, std::uint64_t number, int rank) {
  return folder + "/" + kind + std::to_string(number) + "." + std::to_string(rank);
}

/// Whole when it appears.
void publish(const std::string& path, const void* data, std::size_t bytes) {
  const std::string hidden = path + ".new";
  std::ofstream(hidden, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  fs::rename(hidden, path);
}

Contents read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// False: this rank aborted first.
bool wait_for(const Rank& rank, const std::string& path) {
  while (!fs::exists(path)) {
    {
      const Locked locked;
      if (rank.aborted) return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  return true;
}

std::size_t sent_bytes(const CollectiveCall& call, int ranks) {
  const std::size_t parts =
      call.kind == Collective::reduce_scatter ? static_cast<std::size_t>(ranks) : 1;
  return call.count * parts * size_of(call.type);
}

struct SplitNote {
  int color;
  int key;
};

}  // namespace

std::string folder_of_processes() {
  const char* folder = std::getenv("CUDA_ON_HOST_NCCL");
  return folder == nullptr ? "" : folder;
}

std::shared_ptr<Clique> join_processes(const std::string& folder, int size, int number,
                                       const std::string& gpu) {
  auto clique = std::make_shared<Clique>();
  clique->size = size;
  clique->folder = folder;
  fs::create_directories(folder);
  publish(join(folder, "rank", 0, number), gpu.data(), gpu.size());
  return clique;
}

void look_for_processes(Clique& clique) {
  for (int rank = 0; rank < clique.size; ++rank) {
    const std::string path = join(clique.folder, "rank", 0, rank);
    if (clique.ranks.contains(rank) || !fs::exists(path)) continue;
    const Contents gpu = read(path);
    clique.add(rank, std::string(gpu.begin(), gpu.end()));
  }
}

// Who is at a call has read all of the one before.
void run_collective_of_processes(const Rank& rank, std::uint64_t index,
                                 const CollectiveCall& call) {
  const std::string& folder = rank.clique->folder;
  const int size = rank.clique->size;
  publish(join(folder, "call", index, rank.rank), call.send, sent_bytes(call, size));
  std::vector<Contents> sent;
  for (int other = 0; other < size; ++other) {
    const std::string path = join(folder, "call", index, other);
    if (!wait_for(rank, path)) return;
    sent.push_back(read(path));
  }
  if (index > 0) fs::remove(join(folder, "call", index - 1, rank.rank));
  std::vector<CollectiveCall> calls(static_cast<std::size_t>(size), call);
  const std::size_t most = call.count * size_of(call.type) * static_cast<std::size_t>(size);
  Contents unused(most);
  for (std::size_t other = 0; other < calls.size(); ++other) {
    calls[other].send = sent[other].data();
    if (static_cast<int>(other) != rank.rank) calls[other].receive = unused.data();
  }
  compute(calls);
}

void run_transfers_of_processes(Rank& rank, const std::vector<Transfer>& transfers) {
  const std::string& folder = rank.clique->folder;
  Clique& clique = *rank.clique;
  const auto letter = [&](int from, int to, std::uint64_t number) {
    return join(folder, "letter", number, from) + "." + std::to_string(to);
  };
  for (const Transfer& transfer : transfers) {
    if (!transfer.sends) continue;
    publish(letter(rank.rank, transfer.peer, clique.sent[transfer.peer]++), transfer.data,
            transfer.count * size_of(transfer.type));
  }
  for (const Transfer& transfer : transfers) {
    if (transfer.sends) continue;
    const auto path = letter(transfer.peer, rank.rank, clique.received[transfer.peer]++);
    if (!wait_for(rank, path)) return;
    const Contents contents = read(path);
    std::memcpy(transfer.data, contents.data(), contents.size());
    fs::remove(path);
  }
}

void split_processes(const Rank& parent, std::uint64_t index, int color, int key, Rank* child) {
  const std::string& folder = parent.clique->folder;
  const SplitNote own{color, key};
  publish(join(folder, "split", index, parent.rank), &own, sizeof own);
  if (child == nullptr) return;
  int before = 0;
  int size = 0;
  for (int other = 0; other < parent.clique->size; ++other) {
    const std::string path = join(folder, "split", index, other);
    if (!wait_for(parent, path)) return;
    SplitNote note{};
    std::memcpy(&note, read(path).data(), sizeof note);
    if (note.color != color) continue;
    ++size;
    if (std::tie(note.key, other) < std::tie(key, parent.rank)) ++before;
  }
  child->rank = before;
  child->clique = join_processes(join(folder, "part", index, color), size, before,
                                 parent.clique->gpus.at(parent.rank));
}

}  // namespace cuda_on_host
