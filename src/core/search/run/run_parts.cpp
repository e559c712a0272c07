#include "core/search/run/run_parts.hpp"

#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/host/this_host.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/host/find_host_profile.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/report/files/supervisor_files.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/modelled.hpp"
#include "core/search/run/kept_machine.hpp"
#include "core/search/run/log_settings.hpp"
#include "core/search/schedule/excluded_workers.hpp"
#include "core/search/space/offload_space.hpp"

namespace dstune {
namespace {

std::string device_name(const std::vector<WorkerInfo>& workers, const std::string& backend) {
  const DeviceInfo* device = find_device(workers.front().devices, backend);
  return device == nullptr ? "" : device->name;
}

std::optional<EarlierJournal> earlier_journal(const CommandLine& options,
                                              const TuningConfig& config) {
  if (existing_results(options) != ExistingResults::resume) return std::nullopt;
  return read_earlier_journal(concat(config.autotuning.results_dir, "/", kJournalName));
}

EarlierLimits earlier_limits(const std::optional<EarlierJournal>& earlier,
                             const TuningConfig& config) {
  if (!earlier) return {};
  const JournalContent& content = earlier->content;
  // The experiments' own limit left out the headroom.
  const Bytes headroom = content.memory_limit == 0 ? 0 : config.objective.memory_headroom;
  return {content.memory_limit + headroom, content.host_memory_limit};
}

json::object learnt_before(const std::filesystem::path& kept_machine) {
  const auto learnt = read_kept_machine(kept_machine);
  return learnt ? to_json(*learnt) : json::object();
}

}  // namespace

TuningConfig read_checked_config(const CommandLine& options, int ranks) {
  if (ranks < 2) {
    throw ConfigError("mpirun", {{"-n 1",
                                  "starts no worker, since rank 0 only tunes; start one rank more "
                                  "than there are GPUs (or CPU workers): \"mpirun -n 9\" for 8 "
                                  "GPUs, \"mpirun -n 3\" for 2 CPU workers"}});
  }
  if (options.gpus && *options.gpus != ranks - 1) {
    throw ConfigError("command line",
                      {{"--gpus", concat("is ", *options.gpus, ", but mpirun has started ",
                                         ranks - 1, ranks == 2 ? " worker" : " workers",
                                         " beside rank 0; accepted: as many, by mpirun -n ",
                                         *options.gpus + 1)}});
  }
  TuningConfig config = read_tuning_config(options);
  settle_run_folder(config, options);
  check_folders(config, options);
  return config;
}

RunParts make_run_parts(WorkerPool& pool, const CommandLine& options, const TuningConfig& given,
                        const std::vector<WorkerInfo>& reported, const Surroundings& surroundings) {
  const std::vector<int> excluded = excluded_ranks(given.exclude, reported, given.source);
  for (const int rank : excluded) pool.retire(rank);
  std::vector<WorkerInfo> workers = without_ranks(reported, excluded);
  auto earlier = earlier_journal(options, given);
  const Machine machine =
      machine_of_run(given, workers, pool.size(), host_name(), earlier_limits(earlier, given),
                     profile_places(results_root(given.autotuning)));
  std::filesystem::path kept_machine;
  if (given.learnt) {
    kept_machine = kept_machine_path(surroundings.cache_folder, machine.backend,
                                     device_name(workers, machine.backend));
  }
  auto backend = surroundings.make_to_ask(machine.backend);
  const Device* const imitated = backend ? &backend->device(kOnlyAsked) : nullptr;
  MemoryPredictor predictor = make_memory_predictor(imitated);
  DryRunner dry_run = make_dry_runner(imitated);
  RunParts parts{options,
                 with_offload(completed(given, machine), machine, predictor, dry_run),
                 machine.group_size,
                 std::move(workers),
                 surroundings,
                 std::move(backend),
                 std::move(predictor),
                 std::move(dry_run),
                 std::move(kept_machine),
                 std::move(earlier)};
  // This check comes before any file of an earlier run is touched.
  check_modelled(parts.config, plan_stages(parts.config, machine.group_size, parts.predictor));
  log_settings(parts.config, machine, parts.workers);
  if (options.run && !is_training_started()) log_warning(kNobodyStarts);
  for (const auto& warning : machine_warnings(given, machine, parts.workers, host_name())) {
    log_warning(warning);
  }
  return parts;
}

RunIdentity identity_of(const RunParts& parts) {
  const RunSettings& settings = parts.config.settings;
  return {to_json(settings.model),
          settings.backend,
          device_names(settings.backend, parts.workers),
          to_text(parts.config.deepspeed.step().version),
          version_text(),
          library_names(settings.backend, parts.workers),
          parts.surroundings.mpi,
          settings.threads_per_rank,
          learnt_before(parts.kept_machine),
          libraries_found(settings.backend, parts.workers)};
}

}  // namespace dstune
