// One experiment: all that a worker must be told.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/memory/caching_model.hpp"
#include "core/experiment/deepspeed_config.hpp"
#include "core/experiment/length_settings.hpp"
#include "core/experiment/loss_settings.hpp"
#include "core/model/attention_kind.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// How an experiment is run; the same for all experiments of a run.
struct RunSettings {
  ModelSpec model;
  std::int64_t sequence_length = 1024;  ///< tokens; where lengths vary, of the longest padded row
  LengthSettings lengths = {};
  AttentionKind attention = AttentionKind::sdpa;
  LossSettings loss = {};
  Bytes memory_limit = 0;  ///< per rank; never 0 in a checked configuration
  AllocatorModel allocator = AllocatorModel::exact;  ///< what memory_limit is a limit on
  std::string backend = "cpu";  ///< cpu, cuda or sim; "auto" is resolved by then
  int threads_per_rank =
      1;  ///< of the BLAS on the CPU backend: cores over the ranks that share them
  /// Workers of the host that has most: what DeepSpeed's device_count() would be. Ranks are dealt
  /// out host by host, so rank / devices_per_node is the node. 0: not known, everything is one
  /// node.
  int devices_per_node = 0;
  int warmup_steps = 1;
  int measure_steps = 3;  ///< at least this many optimizer steps
  Seconds experiment_timeout = 600;
  std::uint64_t seed = 1;
  HostOverhead host_overhead = {};
  bool share_gpu = false;  ///< several ranks train on one GPU, so that times mean nothing

  bool operator==(const RunSettings&) const = default;
};

struct Experiment {
  std::string name;           ///< folder name in results_dir: "z2_gas1_tmbspg4"
  DeepSpeedConfig ds_config;  ///< complete: every "auto" resolved, the batch triple consistent
  int ranks = 1;              ///< group size = data-parallel world size
  RunSettings settings;
  int repetition = 0;  ///< measuring the same again, for its own sake, is another experiment
  /// No step: the group measures what its machine can do (Measured::machine_rates). Only the
  /// precision of `ds_config` counts.
  bool measures_machine = false;

  /// The properties that make two experiments the same for resume: DeepSpeed JSON (order of keys
  /// aside), ranks and everything in settings that changes the result (not the timeout). Canonical
  /// JSON text.
  std::string key() const;
};

json::object to_json(const Experiment& experiment);
/// Inverse of to_json. @throws std::invalid_argument if `object` is no experiment
Experiment experiment_from_json(const json::object& object);

}  // namespace dstune
