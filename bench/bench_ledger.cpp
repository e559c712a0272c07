// What the ledger costs: all entries of one optimizer step of gpt2, made again without the step.
//
// usage: bench_ledger [rounds=50]

#include <cstdlib>
#include <iostream>
#include <string>
#include <variant>

#include "bench/bench_support.hpp"
#include "core/base/text.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune {
namespace {

constexpr int kRanks = 8;

Experiment experiment_in(int stage) {
  Experiment experiment;
  experiment.name = concat("z", stage);
  experiment.ranks = kRanks;
  experiment.settings.memory_limit = Bytes{1} << 40U;
  experiment.ds_config = {{"train_micro_batch_size_per_gpu", 1},
                          {"bf16", {{"enabled", true}}},
                          {"zero_optimization", {{"stage", stage}, {"overlap_comm", true}}}};
  return experiment;
}

template <class Lines>
std::uint64_t calls_of(const Lines& lines) {
  std::uint64_t calls = 0;
  for (const auto& line : lines) calls += line.calls;
  return calls;
}

std::uint64_t entries_of(const Ledger& ledger) {
  return calls_of(ledger.collectives()) + calls_of(ledger.passes()) + calls_of(ledger.syncs()) +
         calls_of(ledger.transfers()) + calls_of(ledger.host());
}

template <class Lines, class Add>
void repeat(const Lines& lines, Add add) {
  for (const auto& line : lines) {
    for (std::uint64_t call = 0; call < line.calls; ++call) add(line);
  }
}

void make_again(const Ledger& step, Ledger& copy) {
  copy.clear();
  repeat(step.collectives(), [&](const CollectiveLine& line) { copy.add(line); });
  repeat(step.passes(), [&](const PassLine& line) { copy.add_pass(line.pass, 1, 1); });
  repeat(step.syncs(), [&](const SyncLine& line) { copy.add_sync(line.reason, 0); });
  repeat(step.transfers(), [&](const TransferLine& line) {
    copy.add_transfer({.transfer = line.transfer, .bytes = 1});
  });
  repeat(step.host(), [&](const HostLine& line) { copy.add_host(line.event, line.time); });
}

void run(int rounds) {
  std::cout << "| stage | entries | ns per entry | us per step |\n|--:|--:|--:|--:|\n";
  for (int stage = 0; stage <= 3; ++stage) {
    const DryRun dry = dry_run(experiment_in(stage), 0);
    const Ledger& step = std::get<Measured>(dry.outcome).ledger;
    Ledger copy;
    const Seconds time =
        bench::median_times({{"step", [&] { make_again(step, copy); }}}, rounds).front();
    const auto entries = static_cast<double>(entries_of(step));
    std::cout << concat("| ", stage, " | ", entries_of(step), " | ", fixed(time / entries * 1e9, 1),
                        " | ", fixed(time * 1e6, 1), " |\n");
  }
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  dstune::run(argc > 1 ? std::stoi(argv[1]) : 50);
  return EXIT_SUCCESS;
}
