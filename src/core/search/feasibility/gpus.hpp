// Which worker drives which GPU, and whether each has one of its own.
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Only for workers that all use the backend of GPUs: those whose device has an id.
///
/// @param tuner_host  where rank 0 is, whose line in the host file has one slot more
/// @throws ConfigError  with a problem for each host that has more workers than GPUs, or where two
///                      workers would drive the same GPU; it shows the right line of the host file
void check_gpus(const std::vector<WorkerInfo>& workers, const std::string& tuner_host);

/// Workers that drive `worker`'s GPU, itself included; 1 if its device is no GPU.
int workers_on_gpu_of(const WorkerInfo& worker, const std::vector<WorkerInfo>& workers);

/// A line for each host with GPUs that nobody drives.
std::vector<std::string> idle_gpu_warnings(const std::vector<WorkerInfo>& workers,
                                           const std::string& tuner_host);

/// Markdown, a row per worker: host, rank, index and name of its GPU, begin of its id; "" if there
/// is no GPU.
std::string gpu_table(const std::vector<WorkerInfo>& workers);

}  // namespace dstune
