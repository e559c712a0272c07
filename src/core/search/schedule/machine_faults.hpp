// Finds the slow ranks and the slow connections in what a preflight measured.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/outcome/machine_check.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// A group that was checked.
struct CheckedGroup {
  std::vector<Worker> workers;     ///< in the order of the group
  std::vector<std::string> names;  ///< of the workers: "rank 3 on nodeB"
  MachineCheck check;
};

/// Something that is far slower than its like.
struct MachineFault {
  std::string key;              ///< equal in two checks: the same fault
  std::vector<Worker> workers;  ///< one rank, or the two ends of a connection
  std::string how;  ///< "takes 2.1 times as long as the others for a matrix product (...)"
};

/// Compares each rank with the others of the same hardware, whatever group they are in: more than
/// 1.3 times as long for a matrix product, 1.5 for a copy, or 1.3 by interruptions alone. Where the
/// others are interrupted themselves the machine is busy: 8 times, and nobody for interruptions.
/// A rank's messages are those with the best of its partners, on its host or elsewhere, beside the
/// best of the others: twice as long for long messages, three times for short ones. A single
/// connection is beside the slower ones of its kind, of which there must be four, since the pairs
/// of a host may be joined in more than one way. What a single check shows may be a moment: only
/// who is found in each of several is at fault.
std::vector<MachineFault> find_machine_faults(const std::vector<CheckedGroup>& groups);

/// "4 ranks: 41.2 to 42.0 GFLOP/s, copies of 8.1 to 8.3 GB/s, jitter at most 3 %; 6 pairs: ..."
std::string describe_check(const std::vector<CheckedGroup>& groups);

/// The same as Markdown tables, a row for each rank and each pair.
std::string check_table(const std::vector<CheckedGroup>& groups);

}  // namespace dstune
