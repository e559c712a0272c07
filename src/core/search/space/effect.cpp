#include "core/search/space/effect.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/base/text_hash.hpp"

namespace dstune {
namespace {

void add(std::uint64_t& number, std::uint64_t what) {
  const char* const bytes = reinterpret_cast<const char*>(&what);
  number = hash_of({bytes, sizeof what}, number);
}

void add_dry_run(std::uint64_t& number, std::uint64_t walk, const Measured& measured) {
  add(number, walk);
  add(number, hash_of(to_json_text(measured.ledger.to_json(), 0)));
  const PeakMemory& peak = measured.peak_memory;
  add(number, peak.total);
  add(number, peak.reserved);
  for (const Bytes size : peak.at_peak.bytes) add(number, size);
  for (const Bytes size : peak.categories.bytes) add(number, size);
}

// What the caching allocator reserves depends on the room that there is.
bool fits_within(Bytes limit, const Measured& measured, Experiment& experiment,
                 const DryRunner& dry_run, int rank) {
  if (limit == 0 || measured.peak_memory.counted() <= limit) return true;
  if (experiment.settings.allocator == AllocatorModel::exact) return false;
  experiment.settings.memory_limit = limit;
  const DryRun limited = dry_run(experiment, rank);
  experiment.settings.memory_limit = kUnlimited;
  return std::holds_alternative<Measured>(limited.outcome);
}

using Needs = std::array<double, 9>;

template <class Lines, class Value>
double sum(const Lines& lines, Value value) {
  double total = 0;
  for (const auto& line : lines) total += static_cast<double>(value(line));
  return total;
}

Needs needs_of(const Measured& dry) {
  const Ledger& ledger = dry.ledger;
  const auto calls = [](const auto& line) { return line.calls; };
  return {static_cast<double>(dry.peak_memory.counted()),
          sum(ledger.collectives(), calls),
          sum(ledger.collectives(), [](const CollectiveLine& line) { return line.wire_bytes; }),
          sum(ledger.collectives(),
              [](const CollectiveLine& line) {
                return line.stream == Stream::compute ? line.wire_bytes : 0;
              }),
          sum(ledger.passes(), calls),
          sum(ledger.passes(), [](const PassLine& line) { return line.read + line.written; }),
          sum(ledger.syncs(), calls),
          sum(ledger.transfers(), calls),
          sum(ledger.host(), calls)};
}

}  // namespace

std::vector<int> ranks_that_differ(const StepConfig& step, const ModelParameters& parameters,
                                   int ranks) {
  const bool divides_by_ranks =
      step.stage == 3 && step.mics_shard_size == 0 && step.hpz_partition_size == 1;
  const bool is_even =
      divides_by_ranks &&
      std::all_of(parameters.tensors.begin(), parameters.tensors.end(),
                  [&](const ParameterSpec& tensor) { return tensor.numel() % ranks == 0; });
  if (step.stage == 0 || is_even) return {0};
  return ranks_to_look_at(ranks);
}

Effect find_effect(Experiment experiment, const std::vector<int>& ranks, const DryRunner& dry_run) {
  const Bytes limit = experiment.settings.memory_limit;
  experiment.settings.memory_limit = kUnlimited;
  Effect effect;
  effect.number = kHashStart;
  effect.fits = true;
  for (const int rank : ranks) {
    DryRun run = dry_run(experiment, rank);
    auto* const measured = std::get_if<Measured>(&run.outcome);
    if (measured == nullptr) {
      const auto* const skipped = std::get_if<Skipped>(&run.outcome);
      effect.skipped = skipped != nullptr ? skipped->reason : describe(run.outcome);
      return effect;
    }
    add_dry_run(effect.number, run.walk, *measured);
    const PeakMemory peak = measured->peak_memory;
    if (!fits_within(limit, *measured, experiment, dry_run, rank) && effect.fits) {
      effect.fits = false;
      effect.shortage = concat("needs ", format_bytes(peak.counted()), " on rank ", rank, " of ",
                               format_bytes(limit));
    }
    if (rank == 0) {
      effect.dry = std::move(*measured);
    } else if (peak.counted() > effect.dry.peak_memory.counted()) {
      effect.dry.peak_memory = peak;
    }
  }
  return effect;
}

bool is_dominated(const Measured& a, const Measured& b) {
  const Needs more = needs_of(a);
  const Needs less = needs_of(b);
  return more != less && std::equal(more.begin(), more.end(), less.begin(),
                                    [](double x, double y) { return x >= y; });
}

}  // namespace dstune
