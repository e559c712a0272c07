// One experiment: all that a worker must be told.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/memory/caching_model.hpp"
#include "core/device/product_workspace.hpp"
#include "core/experiment/deepspeed_config.hpp"
#include "core/experiment/length_settings.hpp"
#include "core/experiment/loss_settings.hpp"
#include "core/model/attention_kind.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

struct HostLimits;

/// How an experiment is run; the same for all experiments of a run.
struct RunSettings {
  ModelSpec model;
  /// Tokens; where lengths vary, the length of the longest padded row.
  std::int64_t sequence_length = 1024;
  LengthSettings lengths = {};
  AttentionKind attention = AttentionKind::sdpa;
  LossSettings loss = {};
  Bytes memory_limit = 0;  ///< per rank; never 0 in a checked configuration
  /// Bytes of the host's memory that the tensors of one rank may have, as PeakHostMemory::held; 0:
  /// they count within memory_limit, since device and host are one memory.
  Bytes host_memory_limit = 0;
  bool is_one_memory() const { return host_memory_limit == 0; }
  Bytes pinned_limit = 0;  ///< of a rank, as PeakHostMemory::pinned; 0: none of its own
  Bytes drive_limit = 0;   ///< of a rank's files; 0: none but what the drive has
  HostLimits host_limits() const;
  /// The same without any limit, for dry runs that ask what is needed.
  RunSettings without_limits() const;
  /// How the memory that memory_limit bounds is counted.
  AllocatorModel allocator = AllocatorModel::exact;
  ProductWorkspace product_workspace = {};  ///< of PyTorch; none on a CPU
  std::string backend = "cpu";  ///< "cpu", "cuda" or "sim"; "auto" has been resolved before
  /// Threads of the BLAS on the CPU backend, and of the host's passes over what is offloaded on
  /// every backend: the cores divided by the ranks that share them.
  int threads_per_rank = 1;
  /// The number of workers on the host that has most, which DeepSpeed's device_count() would
  /// return. Ranks are dealt out host by host, so rank / devices_per_node is the node. 0: not
  /// known; all ranks count as one node.
  int devices_per_node = 0;
  int warmup_steps = 1;
  int measure_steps = 3;           ///< the least number of measured optimizer steps
  Seconds least_warmup_time = 0;   ///< of the steps before the measured ones
  Seconds least_measure_time = 0;  ///< of the measured steps
  /// Every micro-step of a measured step runs. Else those that are alike are computed from two of
  /// them (MicroSteps::some).
  bool whole_steps = false;
  Seconds experiment_timeout = 600;
  std::uint64_t seed = 1;
  HostOverhead host_overhead = {};
  bool share_gpu = false;  ///< several ranks train on one GPU, so that times mean nothing

  bool operator==(const RunSettings&) const = default;
};

struct Experiment {
  std::string name;  ///< folder name in results_dir: "z2_gas1_tmbspg4"
  /// Complete: every "auto" is resolved, and the batch triple is consistent.
  DeepSpeedConfig ds_config;
  int ranks = 1;  ///< group size = data-parallel world size
  RunSettings settings;
  /// Which measurement of the same configuration this is, each by itself.
  int repetition = 0;
  /// True if no step runs and the group measures its machine instead (Measured::machine_rates). Of
  /// `ds_config` only the precision counts then.
  bool measures_machine = false;
  /// True for one that is no part of the search: MachineWatch asked for it, or it is the optimum's
  /// whole step (check_whole_step()). Its repetitions are counted by themselves.
  bool is_reference = false;
  /// A measurement whose first steps all take longer than this ends with them, since the
  /// configuration cannot be the best of its search; 0: none does. What is measured of a step does
  /// not depend on it, so that it is no part of key().
  Seconds give_up_above = 0;

  /// The properties that make two experiments the same for resume: DeepSpeed JSON (order of keys
  /// aside), ranks and everything in settings that changes the result (not the timeout). Canonical
  /// JSON text.
  std::string key() const;
};

json::object to_json(const Experiment& experiment);
/// Inverse of to_json. @throws std::invalid_argument if `object` is no experiment
Experiment experiment_from_json(const json::object& object);

}  // namespace dstune
