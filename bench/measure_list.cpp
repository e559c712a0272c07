// Measures a list of configurations under mpirun, one after the other, into a journal, and
// what the machine can do.
//
// usage: mpirun -n RANKS measure_list BASE.json LIST.jsonl JOURNAL
//   BASE.json   a configuration of dstune-mpi: its model and settings are used
//   LIST.jsonl  one complete DeepSpeed JSON a line
//   JOURNAL     made, or continued where it ends

#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "core/base/host/this_host.hpp"
#include "core/base/json_parser.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/predict/measured_rates.hpp"
#include "core/search/schedule/scheduler.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/backends.hpp"
#include "mpi/base/environment.hpp"
#include "mpi/base/placement.hpp"
#include "mpi/collectives/mpi_collectives.hpp"
#include "mpi/pool/mpi_worker_pool.hpp"
#include "mpi/pool/worker_loop.hpp"

namespace {

using namespace dstune;

void work(const Communicator& world, const Placement& placement, const std::string& name) {
  const auto backend = make_backend(name, placement);
  WorkerOptions options;
  options.devices = describe_devices(placement);
  run_worker_loop(world, options, [&](const Experiment& experiment, MpiGroup& group) {
    const RunSettings& settings = experiment.settings;
    Device& device = backend->device({settings.memory_limit, settings.threads_per_rank});
    const auto collectives = backend->collectives(
        group, [&group](Device& on) { return std::make_unique<MpiCollectives>(on, group); });
    return run_experiment(experiment, device, *collectives, group);
  });
}

void measure(MpiWorkerPool& pool, const TuningConfig& given, const char* list, const char* path) {
  const Machine machine = machine_of_run(given, pool.workers(), pool.size(), host_name());
  const TuningConfig config = completed(given, machine);
  Journal journal(path, Journal::Mode::resume,
                  {to_json(config.settings.model), config.settings.backend,
                   device_names(config.settings.backend, pool.workers())});
  Scheduler scheduler(pool, journal,
                      [](const Record& record, bool) {
                        if (record.experiment.measures_machine) return;
                        std::cout << record.experiment.name << ": " << describe(record.outcome)
                                  << std::endl;
                      },
                      {});
  measured_rates(config, machine.group_size, scheduler);
  std::ifstream lines(list);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    scheduler.run({{"c" + std::to_string(++number), parse_json(line).as_object(),
                    machine.group_size, config.settings}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: mpirun -n RANKS measure_list BASE.json LIST.jsonl JOURNAL\n";
    return 2;
  }
  Environment environment(&argc, &argv);
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  const Placement placement = find_placement(world);
  const TuningConfig config = read_tuning_config(parse_command_line({argv[1]}));
  if (world.rank() != 0) {
    work(world, placement, config.settings.backend);
    return 0;
  }
  MpiWorkerPool pool(world, {});
  measure(pool, config, argv[2], argv[3]);
  return pool.stop() ? 0 : 1;
}
