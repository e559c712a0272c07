#include "core/search/run/log_settings.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/line_width.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/overrides.hpp"
#include "core/experiment/deepspeed_version.hpp"
#include "core/model/parameter_text.hpp"
#include "core/search/feasibility/gpus.hpp"
#include "core/search/tuners/report/user_remarks.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

/// The most that a name takes of a line.
constexpr std::size_t kNameColumns = 28;

void log_lines(const std::string& text) {
  for (const auto& line : split(text, '\n')) {
    if (!line.empty()) log_line(line);
  }
}

std::string sequence_text(const TuningConfig& config) {
  if (config.settings.lengths.varies()) return describe(config.settings.lengths);
  std::vector<std::string> lengths;
  for (const std::int64_t length : config.sequence_lengths) lengths.push_back(concat(length));
  return lengths.empty() ? concat(config.settings.sequence_length) : join(lengths, ", ");
}

void log_parts(const std::vector<std::string>& parts, std::string_view separator) {
  for (const auto& line : in_lines(parts, separator)) log_line(line);
}

}  // namespace

void log_beginning(const TuningConfig& config, int ranks) {
  const int workers = ranks - 1;
  const ModelParameters parameters = make_model_parameters(config.settings.model);
  const std::string before = "dstune-mpi: tuning ";
  const std::string behind =
      concat(" (", cut_in_middle(config.settings.model.name, kNameColumns), ", ",
             parameter_text(parameters.total(), parameters.trainable_total()), ") on ", workers,
             workers == 1 ? " worker" : " workers");
  const std::size_t room = kLineWidth - std::min(kLineWidth, before.size() + behind.size());
  std::vector<std::string> parts = {concat(before, cut_in_middle(config.source, room), behind)};
  if (!config.model_source.empty()) parts.push_back(concat("model from ", config.model_source));
  const std::string precision = open_precision_text(config.open_precision);
  if (!precision.empty()) parts.push_back(concat("in ", precision));
  parts.push_back(concat("results in ", config.autotuning.results_dir));
  log_parts(parts, "; ");
}

void log_preflight(const std::string& summary) {
  for (const auto& part : split(summary, ';')) {
    if (part.empty()) continue;
    auto facts = split(part, ',');
    for (auto& fact : facts) fact = std::string(trim(fact));
    facts.front() = concat("preflight: ", facts.front());
    log_parts(facts, ", ");
  }
}

void log_settings(const TuningConfig& config, const Machine& machine,
                  const std::vector<WorkerInfo>& workers) {
  const RunSettings& settings = config.settings;
  std::set<std::string> hosts;
  for (const auto& worker : workers) hosts.insert(worker.host);
  const std::string deepspeed = to_text(config.deepspeed.step().version);
  log_parts(
      {concat("sequence ", sequence_text(config)), concat("loss ", describe(settings.loss)),
       concat(machine.workers, " workers on ", hosts.size(), hosts.size() == 1 ? " host" : " hosts",
              ", ", machine.group_size, " per experiment, ", machine.backend, ", ",
              format_bytes(machine.memory_limit), " and ", machine.threads_per_rank,
              machine.threads_per_rank == 1 ? " thread" : " threads", " per rank"),
       concat("host overhead: ", describe(machine.host_overhead)), concat("DeepSpeed ", deepspeed)},
      "; ");
  const std::string free_batch = free_batch_text(config);
  if (!free_batch.empty()) log_line(free_batch);
  const DeviceInfo* device = find_device(workers.front().devices, machine.backend);
  if (device != nullptr && !device->id.empty()) log_lines(gpu_table(workers));
  if (!machine.memory_limit_origin.empty()) {
    log_line(concat("memory limit ", format_bytes(machine.memory_limit),
                    " per rank: ", machine.memory_limit_origin));
  }
  const bool offloads =
      says_what_is_offloaded(config.deepspeed.json(), config.space, config.stages);
  if (offloads && machine.host_memory_limit != 0 && machine.host_memory_limit != kNoLimit) {
    log_line(concat("host memory for what is offloaded: ", format_bytes(machine.host_memory_limit),
                    " per rank"));
  }
  if (offloads && machine.pinned_limit > 0) {
    log_line(concat("pinned and locked memory: ", format_bytes(machine.pinned_limit), " per rank"));
  }
  if (offloads && machine.drive_limit > 0) {
    log_line(concat("space on the drive: ", format_bytes(machine.drive_limit), " per rank"));
  }
  for (const auto& warning : config.warnings) log_warning(warning);
}

}  // namespace dstune
