#include "core/train/check_machine.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/host/this_host.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/rates/device_peaks.hpp"
#include "core/device/rates/timing.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/check_messages.hpp"

namespace dstune {
namespace {

// The key under which ds_config says that it is a preflight; it is none of DeepSpeed's.
constexpr std::string_view kPreflight = "dstune_preflight";

constexpr Seconds kWatched = 0.2;     // for which the fixed piece of work is repeated
constexpr Seconds kLongPiece = 1e-3;  // of one such piece, at least half of it
constexpr int kMostPieces = 400;
constexpr Bytes kLongMessage = Bytes{1} << 20U;  // at which Slingshot's sums went wrong
constexpr Bytes kMostSpace = Bytes{1} << 28U;    // of the product and the copy

double jitter_of(Device& device, Tensor space, double flops_per_s) {
  std::int64_t side = 64;
  const auto takes = [&](std::int64_t n) {
    return 2.0 * static_cast<double>(n * n * n) / flops_per_s;
  };
  while (takes(side) < kLongPiece / 2 && 12 * side * side <= space.numel) side *= 2;
  const auto matrix = [&](std::int64_t place) {
    return as_matrix(space.slice(place * side * side, side * side), side, side);
  };
  const Gemm gemm{.a = matrix(0), .b = matrix(1), .c = matrix(2)};
  const auto run = [&] { device.run(gemm); };
  run();
  const Seconds end = device.now() + kWatched;
  Seconds shortest = std::numeric_limits<Seconds>::infinity();
  Seconds sum = 0;
  int pieces = 0;
  do {
    const Seconds time = time_of_call(device, 1, run);
    shortest = std::min(shortest, time);
    sum += time;
    ++pieces;
  } while (device.now() < end && pieces < kMostPieces);
  return shortest > 0 ? sum / pieces / shortest - 1 : 0;
}

/// What one rank found.
struct Report {
  std::string name;  ///< "rank 3 on nodeB"
  MachineCheck check;
  std::vector<WrongBytes> wrong;
};

std::string to_text(const Report& report) {
  json::array wrong;
  for (const WrongBytes& each : report.wrong) wrong.push_back(json::array{each.from, each.how});
  return to_json_text(
      json::object{
          {"name", report.name}, {"check", to_json(report.check)}, {"wrong", std::move(wrong)}},
      0);
}

Report report_from_text(const std::string& text) {
  const json::value value = parse_json(text);
  const json::object& object = value.as_object();
  Report report{
      text_at(object, "name"), machine_check_from_json(object.at("check").as_object()), {}};
  for (const json::value& each : object.at("wrong").as_array()) {
    report.wrong.push_back({each.at(0).to_number<int>(), std::string(each.at(1).as_string())});
  }
  return report;
}

/// A sentence for each wrong message, and the rank that had a part in all of them, if there are
/// several and it is the only one; "" if everything was right.
std::string describe_wrong(const std::vector<Report>& reports) {
  std::vector<std::string> lines;
  std::map<int, std::size_t> parts;
  for (std::size_t to = 0; to < reports.size(); ++to) {
    for (const WrongBytes& wrong : reports[to].wrong) {
      const std::string& here = reports[to].name;
      ++parts[static_cast<int>(to)];
      if (wrong.from == WrongBytes::kSum) {
        lines.push_back(concat("a sum was wrong on ", here, " (", wrong.how, ")"));
        continue;
      }
      if (wrong.from != static_cast<int>(to)) ++parts[wrong.from];
      lines.push_back(concat("bytes of ", reports.at(static_cast<std::size_t>(wrong.from)).name,
                             " arrived wrong on ", here, " (", wrong.how, ")"));
    }
  }
  const std::size_t all = lines.size();
  constexpr std::size_t kShown = 4;
  if (all > kShown) lines.resize(kShown);
  std::string text = join(lines, "; ");
  if (all > kShown) text += concat("; and ", all - kShown, " more");
  std::vector<int> common;
  for (const auto& [rank, count] : parts) {
    if (count == all) common.push_back(rank);
  }
  if (all > 1 && common.size() == 1) {
    text += concat("; ", reports[static_cast<std::size_t>(common.front())].name,
                   " has a part in all of them");
  }
  return text;
}

Outcome merge(const std::vector<Report>& reports) {
  const std::string wrong = describe_wrong(reports);
  if (!wrong.empty()) return Failed{FailureKind::wrong_sums, wrong};
  MachineCheck merged;
  for (const Report& report : reports) {
    const MachineCheck& own = report.check;
    merged.ranks.insert(merged.ranks.end(), own.ranks.begin(), own.ranks.end());
    merged.pairs.insert(merged.pairs.end(), own.pairs.begin(), own.pairs.end());
  }
  merged.ring = reports.front().check.ring;
  Measured measured;
  measured.machine_check = std::move(merged);
  return measured;
}

}  // namespace

void make_preflight(Experiment& machine, const std::vector<std::string>& where) {
  machine.measures_machine = true;
  machine.ds_config.set(kPreflight, json::array(where.begin(), where.end()));
}

bool is_preflight(const Experiment& experiment) {
  return experiment.measures_machine && experiment.ds_config.json().contains(kPreflight);
}

Outcome check_machine(const Experiment& experiment, Device& device, Collectives& collectives,
                      Group& group) {
  const MemoryBudget& memory = device.memory();
  constexpr Bytes kParts = 16;  // of the memory: four of messages, four of the product and the copy
  const Bytes part = experiment.settings.memory_limit / kParts;
  const Bytes longest = std::min(part, kLongMessage);
  const Bytes space = std::min(4 * part, kMostSpace);
  constexpr Bytes kLeastSpace = Bytes{1} << 16U;
  const bool has_room = memory.has_room(space) && memory.has_room(4 * longest);
  if (!group.vote(space >= kLeastSpace && has_room)) {
    return Skipped{"there is too little memory to check the machine"};
  }
  const DType dtype = make_step_config(experiment).dtype;
  Report report{concat(group.name_of_this_rank(), " on ", host_name()), {}, {}};
  std::optional<DevicePeaks> peaks;
  {
    const Buffer buffer(device, MemoryCategory::temporaries, space);
    const Tensor all = buffer.tensor(dtype);
    peaks = measure_peaks(device, dtype, all.data, space);
    if (group.vote(peaks.has_value())) {
      report.check.ranks = {{peaks->gemm_flops_per_s, peaks->copy_bytes_per_s,
                             jitter_of(device, all, peaks->gemm_flops_per_s)}};
    }
  }
  if (report.check.ranks.empty()) return Failed{FailureKind::error, "the device has no time"};
  group.vote(true);  // so that no rank begins to send while another still computes
  MessageCheck messages = check_messages(device, collectives, longest);
  report.check.pairs = std::move(messages.pairs);
  report.check.ring = messages.ring;
  report.wrong = std::move(messages.wrong);
  std::vector<Report> reports;
  for (const std::string& text : group.gather(to_text(report))) {
    reports.push_back(report_from_text(text));
  }
  if (!reports.empty()) return merge(reports);
  Measured own;
  own.machine_check = std::move(report.check);
  return own;
}

}  // namespace dstune
