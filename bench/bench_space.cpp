// A space of 100,800 configurations of stage 3, from the file to the pool: what each step takes.
//
// usage: bench_space [model=gpt2]
// The same space in DeepSpeed: scripts/make_names_fixture.py --measure

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <sys/resource.h>
#include <time.h>

#include "core/base/text.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {
namespace {

constexpr int kRanks = 8;

constexpr const char* kFile = R"({
  "train_micro_batch_size_per_gpu": [1], "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 3, "overlap_comm": [true, false], "reduce_scatter": [false, true],
    "reduce_bucket_size": [5e7, 5e8, 1e9], "allgather_partitions": [true, false],
    "allgather_bucket_size": [5e7, 5e8, 1e9], "contiguous_gradients": [false, true]
  },
  "dstune": {"space": {
    "/zero_optimization/stage3_prefetch_bucket_size": {"from": 0, "to": 9e6, "step": 1e6},
    "/zero_optimization/stage3_param_persistence_threshold": {"from": 0, "to": 9e5, "step": 1e5},
    "/zero_optimization/sub_group_size": {"from": 1e8, "to": 7e8, "step": 1e8}
  }}
})";

TuningConfig read(const std::string& model) {
  const auto path = std::filesystem::temp_directory_path() / "bench_space.json";
  std::ofstream(path) << kFile;
  CommandLine options;
  options.config_path = path;
  options.model = model;
  TuningConfig config = read_tuning_config(options);
  std::filesystem::remove(path);
  return config;
}

// Of this process: what others do on the machine does not count.
Seconds now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + static_cast<Seconds>(time.tv_nsec) * 1e-9;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void print(const std::string& step, std::uint64_t configurations, Seconds time) {
  std::cout << concat("| ", step, " | ", configurations, " | ", fixed(time, 2), " | ",
                      fixed(static_cast<double>(configurations) / time, 0), " | ",
                      fixed(peak_mebibytes(), 1), " |\n");
}

void run(const std::string& model) {
  const TuningConfig config = read(model);
  const std::vector<StagePlan> plans = plan_stages(config, kRanks);
  std::cout << "| step | configurations | s | per second | peak MiB |\n|---|--:|--:|--:|--:|\n";

  Seconds begin = now();
  std::size_t members = 0;
  const Space space = make_spaces(config, kRanks, 3, {{3, 1, 1}}).front();
  for (std::uint64_t i = 0; i < space.size(); ++i) members += space.config(i).json().size();
  print("enumerated", members > 0 ? space.size() : 0, now() - begin);

  begin = now();
  std::size_t letters = 0;
  for (std::uint64_t i = 0; i < space.size(); i += 10) letters += space.name(i).size();
  print("named (every tenth)", letters > 0 ? space.size() / 10 : 0, now() - begin);

  // All steps are the same one: what is left is what comes before the dry runs.
  begin = now();
  const DryRunner same = [](const Experiment&, int) { return DryRun{Measured{}, 1}; };
  const std::uint64_t checked = make_pool(config, kRanks, plans, same).funnel.front().generated;
  print("validated, in normal form", checked, now() - begin);

  begin = now();
  std::atomic<int> dry_runs = 0;
  const DryRunner dry_run = make_dry_runner();
  const DryRunner counted = [&](const Experiment& experiment, int rank) {
    ++dry_runs;
    return dry_run(experiment, rank);
  };
  const Pool pool = make_pool(config, kRanks, plans, counted);
  print("deduplicated by effect", pool.funnel.front().generated, now() - begin);
  std::cout << concat(pool.funnel.front().distinct(), " distinct, of ", dry_runs.load(),
                      " dry runs\n");
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  dstune::run(argc > 1 ? argv[1] : "gpt2");
  return EXIT_SUCCESS;
}
