// describe(), share_of_peak(): an outcome as lines for people.
#include <array>

#include "core/base/text.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

namespace {

std::string flops_text(double flops_per_s) {
  constexpr std::array<const char*, 5> kUnits = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                                 "TFLOP/s"};
  std::size_t unit = 0;
  while (flops_per_s >= 1000 && unit + 1 < kUnits.size()) {
    flops_per_s /= 1000;
    ++unit;
  }
  return concat(fixed(flops_per_s, 1), " ", kUnits[unit]);
}

// Puts a reason on one line: it may quote another program's message, and the log has one line per
// experiment.
std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\r' || letter == '\t') letter = ' ';
  }
  return std::string(trim(text));
}

std::string used_text(const OutOfMemory& fault) {
  if (fault.limit == 0) return concat(format_bytes(fault.in_use), " allocated");
  if (fault.reserved == 0) {
    return concat(format_bytes(fault.in_use), " of ", format_bytes(fault.limit), " allocated");
  }
  return concat(format_bytes(fault.in_use), " allocated, ", format_bytes(fault.reserved), " of ",
                format_bytes(fault.limit), " reserved");
}

std::string time_text(const Measured& measured) {
  if (const auto& varying = measured.varying) {
    return concat(format_seconds(varying->mean_step_time), " on average, P95 ",
                  format_seconds(varying->p95_step_time));
  }
  const auto interval = relative_interval(measured);
  const std::string time = format_seconds(measured.step_time.median);
  if (!interval) return concat(time, measured.steps == 1 ? " (1 step)" : "");
  return concat(time, " +-", fixed(*interval * 100, 1), "% (95 %, ", measured.steps, " steps)");
}

std::string host_text(const Measured& measured) {
  const PeakHostMemory& peak = measured.peak_host_memory;
  if (peak.held == 0) return "";
  return concat(", host ", format_bytes(peak.held),
                peak.drive == 0 ? "" : concat(", drive ", format_bytes(peak.drive)));
}

std::string line(const Measured& measured) {
  return concat(time_text(measured), ", ", flops_text(measured.flops_per_s_per_rank), " per rank, ",
                fixed(measured.samples_per_s, measured.samples_per_s < 1 ? 3 : 1),
                " samples/s, peak ", describe_peak(measured), host_text(measured));
}

std::string line(const OutOfMemory& fault) {
  const std::string rank = concat("out of ", description_of(fault.tier), " on rank ", fault.rank);
  if (fault.requested == 0 && !fault.refusal.empty()) {
    return concat(rank, " (", one_line(fault.refusal), ")");
  }
  const std::string request =
      concat(format_bytes(fault.requested), " more for ", name_of(fault.category));
  if (fault.refusal.empty()) return concat(rank, " (wanted ", request, ", ", used_text(fault), ")");
  return concat(rank, " (the system refused ", request, ": ", one_line(fault.refusal), "; ",
                used_text(fault), ")");
}

std::string line(const Failed& failed) { return concat("failed: ", one_line(failed.reason)); }

std::string line(const Skipped& skipped) { return concat("skipped: ", one_line(skipped.reason)); }

}  // namespace

std::string describe_peak(const Measured& measured, const std::string& where) {
  const PeakMemory& peak = measured.peak_memory;
  const bool is_of_dry_run = measured.step_time.median <= 0;
  std::string others;
  if (peak.in_flight() > 0) {
    others += is_of_dry_run
                  ? concat(", at most ", format_bytes(peak.in_flight()), " more in flight")
                  : concat(", ", format_bytes(peak.active), " active");
  }
  if (peak.reserved > 0) others += concat(", ", format_bytes(peak.reserved), " reserved");
  return concat(format_bytes(peak.allocated), others.empty() ? "" : " allocated", where, others);
}

std::string describe(const Outcome& outcome) {
  return std::visit([](const auto& alternative) { return line(alternative); }, outcome);
}

std::string share_of_peak(const Measured& measured) {
  const auto& peaks = measured.device_peaks;
  if (!peaks || peaks->gemm_flops_per_s <= 0 || measured.flops_per_s_per_rank <= 0) return "";
  const double share = measured.flops_per_s_per_rank / peaks->gemm_flops_per_s;
  return concat(fixed(100 * share, 0), " % of the measured GEMM peak (",
                flops_text(peaks->gemm_flops_per_s), ")");
}

}  // namespace dstune
