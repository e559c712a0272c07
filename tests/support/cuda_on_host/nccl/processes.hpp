// Communicators whose ranks are processes: they meet in files. Instead of threads, where the
// variable CUDA_ON_HOST_NCCL of the environment names a folder, the same for all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/nccl/clique.hpp"

namespace cuda_on_host {

/// Of the variable; "" if it is not set.
std::string folder_of_processes();

/// A communicator that meets in `folder`; this process is its rank `number`, on `gpu`.
std::shared_ptr<Clique> join_processes(const std::string& folder, int size, int number,
                                       const std::string& gpu);
/// Looks who has come.
void look_for_processes(Clique& clique);

/// As run_collective() and run_transfers(). Nobody waits for those who receive.
void run_collective_of_processes(const Rank& rank, std::uint64_t index, const CollectiveCall& call);
void run_transfers_of_processes(Rank& rank, const std::vector<Transfer>& transfers);

/// Waits until all ranks have said their color; then `child`, where there is one, has its own
/// communicator.
void split_processes(const Rank& parent, std::uint64_t index, int color, int key, Rank* child);

}  // namespace cuda_on_host
