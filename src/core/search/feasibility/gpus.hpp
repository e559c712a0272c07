// Which worker drives which GPU, and whether each worker has a GPU of its own.
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Checks that each worker has a GPU of its own. It is only for workers that all use a backend of
/// GPUs, whose devices have ids.
///
/// @param tuner_host  the host of rank 0, whose line in the host file has one slot more
/// @throws ConfigError  with a problem for each host that has more workers than GPUs, or where two
///                      workers would drive the same GPU; it shows the right line of the host file
void check_gpus(const std::vector<WorkerInfo>& workers, const std::string& tuner_host);

/// The number of workers that drive `worker`'s GPU, itself included; 1 if its device is no GPU.
int workers_on_gpu_of(const WorkerInfo& worker, const std::vector<WorkerInfo>& workers);

/// A line for each host with GPUs that no worker drives.
std::vector<std::string> idle_gpu_warnings(const std::vector<WorkerInfo>& workers,
                                           const std::string& tuner_host);

/// That NCCL is in trouble among MIG instances, for experiments of several ranks; "" where no
/// worker has one.
std::string mig_warning(const std::vector<WorkerInfo>& workers);

/// A table in Markdown with a row per worker: host, rank, index and name of its GPU, and the
/// beginning of the GPU's id; "" if there is no GPU.
std::string gpu_table(const std::vector<WorkerInfo>& workers);

}  // namespace dstune
