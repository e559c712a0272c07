// The identity of a run, so that its results are not mixed with another's.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"

namespace dstune {

/// The properties that a run must share with the one it resumes.
struct RunIdentity {
  json::object model;  ///< to_json(ModelSpec)
  std::string backend;
  std::string
      machine;  ///< CPU or GPU model of the workers, sorted and counted: "2 x Intel Xeon ..."
  std::string deepspeed = {};  ///< the release that is tuned for: "0.19.8"
  // Earlier versions did not write these: "" and 0.
  std::string program = {};    ///< "dstune-mpi 0.1.0"
  std::string libraries = {};  ///< that multiply, of all workers: "OpenBLAS 0.3.21, oneDNN 2.6.3"
  std::string mpi = {};        ///< "Open MPI v4.1.4"
  int threads_per_rank = 0;    ///< a label: it is a setting of every experiment too
  /// What the search began with of the machine (to_json(LearntMachine)), which a run that is
  /// continued goes on with; empty: nothing. Not compared.
  json::object learnt = {};
  /// Of the workers' GPUs: driver and libraries with versions and files. Not compared.
  std::vector<std::string> libraries_found = {};

  bool operator==(const RunIdentity&) const = default;
};

json::object to_json(const RunIdentity& identity);
/// Inverse of to_json; also of what earlier versions wrote. @throws std::exception  if `object` is
/// none
RunIdentity run_identity_from_json(const json::object& object);

/// How `found` differs from `recorded`: one problem per difference; a model's name is a label and
/// does not count, nor do threads, and what an earlier version did not write is not compared.
std::vector<Problem> differences(const RunIdentity& recorded, const RunIdentity& found);

/// Remarks on the rest: parts that an earlier version did not write, and other threads.
std::vector<std::string> identity_remarks(const RunIdentity& recorded, const RunIdentity& found);

}  // namespace dstune
