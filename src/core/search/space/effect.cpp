#include "core/search/space/effect.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/text.hpp"

namespace dstune {
namespace {

/// Hashes many values into one number.
class Hash {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (append(values), ...);
  }
  void add_text(std::string_view text) { number_ = hash_of(text, number_); }
  template <class Lines>
  void add_all(const Lines& lines) {
    append(lines.size());
    for (const auto& line : lines) append(line);
  }
  std::uint64_t number() const { return number_; }

 private:
  template <class Value>
  void append(const Value& value) {
    static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
    number_ = hash_of({reinterpret_cast<const char*>(&value), sizeof value}, number_);
  }
  void append(const CollectiveLine& line) {
    const auto& [purpose, kind, dtype, stream, ranks, calls, elements, bytes, wire, exposed,
                 overlapped, added, pipelined] = line;
    add(purpose, kind, dtype, stream, ranks, calls, elements, bytes, wire, exposed, overlapped,
        added, pipelined);
  }
  void append(const PassLine& line) {
    const auto& [pass, calls, read, written] = line;
    add(pass, calls, read, written);
  }
  void append(const SyncLine& line) {
    const auto& [reason, calls, time] = line;
    add(reason, calls, time);
  }
  void append(const TransferLine& line) {
    const auto& [transfer, purpose, tier, is_blocking, stream, calls, bytes] = line;
    add(transfer, purpose, tier, is_blocking, stream, calls, bytes);
  }
  void append(const HostPassLine& line) {
    const auto& [pass, calls, read, written, time] = line;
    add(pass, calls, read, written, time);
  }
  void append(const HostLine& line) {
    const auto& [event, calls, time, idle] = line;
    add(event, calls, time, idle);
  }

  std::uint64_t number_ = kHashStart;
};

// A dry drive takes no time and has no place, so that nothing that it does tells these apart.
void add_drive(Hash& hash, const StepConfig& config) {
  if (!config.uses_drives()) return;
  const auto& [block_size, queue_depth, threads, single_submit, overlap_events] = config.aio;
  hash.add(block_size, queue_depth, threads, single_submit, overlap_events);
  for (const std::string& path : {config.optimizer_nvme_path, config.parameter_nvme_path}) {
    hash.add(path.size());
    hash.add_text(path);
  }
}

void add_dry_run(Hash& hash, std::uint64_t walk, const Measured& measured) {
  const Ledger& ledger = measured.ledger;
  hash.add(walk, ledger.peak_live_elements());
  hash.add_all(ledger.collectives());
  hash.add_all(ledger.passes());
  hash.add_all(ledger.host_passes());
  hash.add_all(ledger.syncs());
  hash.add_all(ledger.transfers());
  hash.add_all(ledger.host());
  const PeakMemory& peak = measured.peak_memory;
  hash.add(peak.allocated, peak.reserved);
  hash.add_all(peak.at_peak.bytes);
  hash.add_all(peak.categories.bytes);
  hash.add(measured.peak_host_memory.held);
}

// Whether a step fits within `limit`. What the caching allocator reserves depends on the limit, so
// that a second dry run with the limit decides, unless what is in use is already more.
bool fits_within(Bytes limit, const Measured& measured, Experiment& experiment,
                 const DryRunner& dry_run, int rank) {
  if (limit == 0 || measured.peak_memory.counted() <= limit) return true;
  const bool is_exact = experiment.settings.allocator == AllocatorModel::exact;
  if (is_exact || measured.peak_memory.allocated > limit) return false;
  experiment.settings.memory_limit = limit;
  const DryRun limited = dry_run(experiment, rank);
  experiment.settings.memory_limit = kUnlimited;
  return std::holds_alternative<Measured>(limited.outcome);
}

using Needs = std::array<double, 12>;

template <class Lines, class Value>
double sum(const Lines& lines, Value value) {
  double total = 0;
  for (const auto& line : lines) total += static_cast<double>(value(line));
  return total;
}

Needs needs_of(const Measured& dry) {
  const Ledger& ledger = dry.ledger;
  const auto calls = [](const auto& line) { return line.calls; };
  return {
      static_cast<double>(dry.peak_memory.counted()),
      static_cast<double>(dry.peak_host_memory.held),
      sum(ledger.collectives(), calls),
      sum(ledger.collectives(), [](const CollectiveLine& line) { return line.wire_bytes; }),
      sum(ledger.collectives(),
          [](const CollectiveLine& line) {
            return line.stream == Stream::compute ? line.wire_bytes : 0;
          }),
      sum(ledger.passes(), calls),
      sum(ledger.passes(), [](const PassLine& line) { return line.read + line.written; }),
      sum(ledger.syncs(), calls),
      sum(ledger.host_passes(), [](const HostPassLine& line) { return line.read + line.written; }),
      sum(ledger.transfers(), [](const TransferLine& line) { return line.bytes; }),
      sum(ledger.transfers(), calls),
      sum(ledger.host(), calls)};
}

}  // namespace

bool uses_drive(const Measured& measured) {
  return std::ranges::any_of(measured.ledger.transfers(),
                             [](const TransferLine& line) { return line.tier == Tier::nvme; });
}

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
  const RunSettings given = experiment.settings;
  experiment.settings = given.without_limits();
  Effect effect;
  effect.fits = true;
  Hash hash;
  add_drive(hash, make_step_config(experiment));
  for (const int rank : ranks) {
    DryRun run = dry_run(experiment, rank);
    auto* const measured = std::get_if<Measured>(&run.outcome);
    if (measured == nullptr) {
      const auto* const skipped = std::get_if<Skipped>(&run.outcome);
      effect.skipped = skipped != nullptr ? skipped->reason : describe(run.outcome);
      return effect;
    }
    add_dry_run(hash, run.walk, *measured);
    const PeakMemory peak = measured->peak_memory;
    const PeakHostMemory on_host = measured->peak_host_memory;
    const auto lack = [&](Store store, Bytes need, Bytes limit) {
      effect.full.set(number_of(store));
      if (!std::exchange(effect.fits, false)) return;
      effect.shortage = concat("needs ", format_bytes(need),
                               store == Store::device ? "" : concat(" of ", description_of(store)),
                               " on rank ", rank, " of ", format_bytes(limit));
    };
    if (!fits_within(given.memory_limit, *measured, experiment, dry_run, rank))
      lack(Store::device, peak.counted(), given.memory_limit);
    for (const auto& [store, need, limit] : host_shortages(on_host, given))
      lack(store, need, limit);
    if (rank == 0) {
      effect.dry = std::move(*measured);
      continue;
    }
    if (peak.counted() > effect.dry.peak_memory.counted()) effect.dry.peak_memory = peak;
    effect.dry.peak_host_memory.merge(on_host);
  }
  effect.number = hash.number();
  return effect;
}

// How much of a drive's time the update hides is in none of the needs.
bool is_dominated(const Measured& a, const Measured& b) {
  if (uses_drive(a) || uses_drive(b)) return false;
  const Needs more = needs_of(a);
  const Needs less = needs_of(b);
  return more != less && std::equal(more.begin(), more.end(), less.begin(),
                                    [](double x, double y) { return x >= y; });
}

}  // namespace dstune
