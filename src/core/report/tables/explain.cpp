#include "core/report/tables/explain.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/report/tables/host_bound.hpp"
#include "core/report/tables/table.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

using Align = Table::Align;

std::string ms(Seconds time) { return fixed(time * 1e3, 2); }

std::string percent_of(double part, double whole) {
  return whole > 0 ? fixed(100 * part / whole, 1) : "-";
}

std::string section(const std::string& title, const Table& table) {
  return table.empty() ? "" : concat("\n", title, "\n\n", table.to_string());
}

std::string time_section(const Measured& measured) {
  const Seconds total = measured.step_time.median;
  if (total <= 0) return "";
  Table table({{"part of the step", Align::left}, {"ms"}, {"%"}});
  const auto add = [&](const char* part, Seconds time) {
    table.add_row({part, ms(time), percent_of(time, total)});
  };
  add("forward", measured.forward_time);
  add("backward", measured.backward_time);
  add("optimizer step", measured.optimizer_time);
  add("rest: tokens, time between them",
      std::max(0.0,
               total - measured.forward_time - measured.backward_time - measured.optimizer_time));
  add("whole step", total);
  add("of it in collectives", measured.communication_time);
  return section("Time: medians over the measured steps, each its slowest rank's", table);
}

std::string varying_section(const std::optional<VaryingSteps>& varying) {
  if (!varying || varying->mean_step_time <= 0) return "";
  Table table({{"of steps that vary in length", Align::left}, {"mean"}, {"P95"}});
  const auto per_second = [](double tokens) { return fixed(tokens, 1); };
  table.add_row({"step time (ms)", ms(varying->mean_step_time), ms(varying->p95_step_time)});
  table.add_row({"tokens/s without padding",
                 per_second(varying->mean_real_tokens / varying->mean_step_time),
                 per_second(varying->p95_tokens_per_s)});
  table.add_row({"tokens/s with padding", per_second(varying->padded_tokens_per_s), ""});
  return section("Lengths: 95 % of the steps are at least as fast as P95", table);
}

std::string collective_section(const Ledger& ledger, bool timed) {
  std::vector<Table::Column> columns = {{"collectives for", Align::left},
                                        {"kind", Align::left},
                                        {"type", Align::left},
                                        {"stream", Align::left},
                                        {"ranks"},
                                        {"calls"},
                                        {"mean message"},
                                        {"sent per rank"}};
  if (timed) columns.insert(columns.end(), {{"exposed (ms)"}, {"overlapped (ms)"}});
  const bool adds = timed && ledger.added_time() > 0;
  if (adds) columns.push_back({"added (ms)"});
  Table table(columns);
  for (const CollectiveLine& line : ledger.collectives()) {
    std::vector<std::string> row = {std::string(name_of(line.purpose)),
                                    std::string(name_of(line.kind)),
                                    std::string(name_of(line.dtype)),
                                    std::string(name_of(line.stream)),
                                    concat(line.ranks),
                                    concat(line.calls),
                                    format_bytes(line.bytes / line.calls),
                                    format_bytes(static_cast<Bytes>(line.wire_bytes))};
    if (timed) row.insert(row.end(), {ms(line.exposed), ms(line.overlapped)});
    if (adds) row.push_back(ms(line.added));
    table.add_row(std::move(row));
  }
  return section("Communication of one step on rank 0", table);
}

std::string pass_section(const Ledger& ledger, const std::optional<DevicePeaks>& peaks) {
  std::vector<Table::Column> columns = {{"pass", Align::left}, {"calls"}, {"read"}, {"written"}};
  if (peaks) columns.push_back({"ms at the speed of a copy"});
  Table table(columns);
  const auto add = [&](std::string_view name, const PassLine& line) {
    std::vector<std::string> row = {std::string(name), concat(line.calls), format_bytes(line.read),
                                    format_bytes(line.written)};
    const auto bytes = static_cast<double>(line.read + line.written);
    if (peaks) row.push_back(ms(bytes / peaks->copy_bytes_per_s));
    table.add_row(std::move(row));
  };
  PassLine sum;
  for (const PassLine& line : ledger.passes()) {
    add(name_of(line.pass), line);
    sum.calls += line.calls;
    sum.read += line.read;
    sum.written += line.written;
  }
  add("all", sum);
  return section("Passes over parameters, gradients and optimizer state", table);
}

std::string wait_section(const Ledger& ledger, bool timed) {
  std::vector<Table::Column> columns = {{"the host waits for", Align::left}, {"times"}};
  if (timed) columns.push_back({"ms"});
  Table table(columns);
  for (const SyncLine& line : ledger.syncs()) {
    std::vector<std::string> row = {std::string(name_of(line.reason)), concat(line.calls)};
    if (timed) row.push_back(ms(line.time));
    table.add_row(std::move(row));
  }
  return section("Host synchronisations", table);
}

std::string host_section(const HostOverhead& overhead, const Ledger& ledger, bool timed) {
  const bool idles = timed && ledger.idle_time() > 0;
  std::vector<Table::Column> columns = {
      {"host code of the training", Align::left}, {"times"}, {"ms"}};
  if (idles) columns.push_back({"compute idle (ms)"});
  Table table(columns);
  const auto add = [&](std::vector<std::string> row, Seconds idle) {
    if (idles) row.push_back(ms(idle));
    table.add_row(std::move(row));
  };
  for (const HostLine& line : ledger.host()) {
    add({std::string(name_of(line.event)), concat(line.calls), ms(line.time)}, line.idle);
  }
  if (!table.empty()) add({"all", "", ms(ledger.host_time())}, ledger.idle_time());
  if (ledger.library_wait() > 0) {
    add({"beside it: arithmetic in which torch is slower", "", ms(ledger.library_wait())}, 0);
  }
  return section(concat("Host overhead, by the ", describe(overhead)), table);
}

std::string transfer_section(const Ledger& ledger) {
  Table table({{"transfer", Align::left},
               {"of", Align::left},
               {"host memory", Align::left},
               {"on stream", Align::left},
               {"calls"},
               {"bytes"}});
  for (const TransferLine& line : ledger.transfers()) {
    const bool waits = line.is_blocking || line.tier == Tier::pageable || line.tier == Tier::locked;
    table.add_row({std::string(name_of(line.transfer)), std::string(name_of(line.purpose)),
                   concat(name_of(line.tier), waits ? ", the host waits" : ""),
                   std::string(name_of(line.stream)), concat(line.calls),
                   format_bytes(line.bytes)});
  }
  return section("Transfers", table);
}

std::string host_pass_section(const Ledger& ledger, bool timed) {
  if (ledger.host_passes().empty()) return "";
  std::vector<Table::Column> columns = {
      {"pass on the host", Align::left}, {"calls"}, {"read"}, {"written"}};
  if (timed) columns.insert(columns.end(), {{"ms"}, {"GB/s"}});
  Table table(columns);
  for (const HostPassLine& line : ledger.host_passes()) {
    std::vector<std::string> row = {std::string(name_of(line.pass)), concat(line.calls),
                                    format_bytes(line.read), format_bytes(line.written)};
    if (timed) {
      const auto bytes = static_cast<double>(line.read + line.written);
      row.push_back(ms(line.time));
      row.push_back(line.time > 0 ? fixed(bytes / line.time * 1e-9, 1) : "");
    }
    table.add_row(std::move(row));
  }
  return section("Passes of the host over what is offloaded, while the device waits", table);
}

std::string gather_section(const Experiment& experiment, const Ledger& ledger) {
  if (ledger.peak_live_elements() == 0) return "";
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  for (const CollectiveLine& line : ledger.collectives()) {
    if (line.purpose != Purpose::parameters) continue;
    calls += line.calls;
    elements += line.elements;
  }
  const auto total = static_cast<double>(make_model_parameters(experiment.settings.model).total());
  Table table({{"gathers"}, {"elements / parameters"}, {"mean elements"}, {"peak live elements"}});
  table.add_row({concat(calls), fixed(static_cast<double>(elements) / total, 2),
                 concat(calls == 0 ? 0 : elements / calls), concat(ledger.peak_live_elements())});
  return section(
      "Parameters of stage 3, gathered in one step (without the persistent ones after the update)",
      table);
}

std::string device_section(const std::optional<DeviceUse>& use) {
  if (!use) return "";
  Table table({{"device", Align::left}, {"value"}});
  const auto add = [&](const char* name, std::optional<double> value, const char* unit) {
    if (value) table.add_row({name, concat(fixed(*value, 0), " ", unit)});
  };
  add("SM clock", use->sm_clock_mhz, "MHz");
  add("its maximum", use->max_sm_clock_mhz, "MHz");
  add("temperature", use->temperature_c, "C");
  add("power of all", use->power_w, "W");
  add("energy of a step", use->energy_per_step_j, "J");
  if (!use->throttle_reasons.empty()) {
    table.add_row({"held back by", join(use->throttle_reasons, ", ")});
  }
  if (use->other_processes > 0) {
    table.add_row({"other processes", concat(use->other_processes)});
  }
  return section("Devices over the measured steps: the lowest clock, the hottest, sums", table);
}

std::string memory_section(const Measured& measured, bool timed) {
  const PeakMemory& peak = measured.peak_memory;
  Table table(
      {{"memory", Align::left}, {"at the peak"}, {"own peak"}, {"own peak in", Align::left}});
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (peak.categories.at(category) == 0) continue;
    table.add_row({std::string(name_of(category)), format_bytes(peak.at_peak.at(category)),
                   format_bytes(peak.categories.at(category)),
                   std::string(name_of(peak.phases[i]))});
  }
  const PeakHostMemory& host = measured.peak_host_memory;
  if (host.held > 0) {
    table.add_row({"host, pinned", format_bytes(host.at_peak.pinned), "", ""});
    table.add_row({"host, pageable", format_bytes(host.at_peak.pageable), "", ""});
    if (host.at_peak.locked > 0) {
      table.add_row({"host, locked", format_bytes(host.at_peak.locked), "", ""});
    }
    table.add_row({"host, as the system gives it", format_bytes(host.held), "", ""});
  }
  if (host.drive > 0) table.add_row({"files on the drive", format_bytes(host.drive), "", ""});
  return section(concat("Memory of ", timed ? "the fullest rank" : "rank 0", ": peak ",
                        describe_peak(measured, concat(" in ", name_of(peak.phase)))),
                 table);
}

}  // namespace

std::string explain(const Experiment& experiment, const Outcome& outcome) {
  const auto* measured = std::get_if<Measured>(&outcome);
  if (measured == nullptr) return concat(experiment.name, ": ", describe(outcome), "\n");
  const bool timed = measured->step_time.median > 0;
  const std::string headline =
      timed ? describe(outcome)
            : concat("computed without running, peak ", describe_peak(*measured));
  const Ledger& ledger = measured->ledger;
  const std::string share = share_of_peak(*measured);
  return concat(experiment.name, ": ", headline, share.empty() ? "" : ", ", share, "\n",
                time_section(*measured), varying_section(measured->varying),
                collective_section(ledger, timed), gather_section(experiment, ledger),
                pass_section(ledger, measured->device_peaks), host_pass_section(ledger, timed),
                wait_section(ledger, timed),
                host_section(experiment.settings.host_overhead, ledger, timed),
                host_bound_text(experiment, *measured), transfer_section(ledger),
                memory_section(*measured, timed), device_section(measured->device_use));
}

}  // namespace dstune
