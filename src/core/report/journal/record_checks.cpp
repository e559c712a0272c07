#include "core/report/journal/record_checks.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

namespace {

constexpr Seconds kLongest = 1e10;  // 300 years
constexpr double kFastest = 1e30;   // samples, tokens or FLOP per second
constexpr int kMostRanks = 1'000'000;
constexpr double kMostSamples = 1e15;  // of one optimizer step

using Numbers = std::vector<std::pair<std::string_view, double>>;

// NaN stands for a time that is not known, so it is none of these.
std::string first_outside(const Numbers& numbers, double most) {
  for (const auto& [name, number] : numbers) {
    if (number < 0 || number > most) return concat(name, " is ", number);
  }
  return "";
}

std::string find_forgery(const Measured& measured) {
  const Summary& time = measured.step_time;
  if (measured.steps < 0) return concat("steps is ", measured.steps);
  if (!(time.median >= 0) || !(time.min <= time.median) || !(time.median <= time.max)) {
    return concat("step_time_s is ", time.min, ", ", time.median, ", ", time.max);
  }
  std::string fault = first_outside({{"step_time_s", time.max},
                                     {"forward_time_s", measured.forward_time},
                                     {"backward_time_s", measured.backward_time},
                                     {"optimizer_time_s", measured.optimizer_time},
                                     {"communication_time_s", measured.communication_time},
                                     {"setup_time_s", measured.setup_time},
                                     {"warmup_time_s", measured.warmup_time},
                                     {"measure_time_s", measured.measure_time}},
                                    kLongest);
  if (!fault.empty()) return fault;
  const DevicePeaks peaks = measured.device_peaks.value_or(DevicePeaks{});
  return first_outside({{"noise_percent", time.noise_percent},
                        {"gemm_flops_per_s", peaks.gemm_flops_per_s},
                        {"copy_bytes_per_s", peaks.copy_bytes_per_s},
                        {"samples_per_s", measured.samples_per_s},
                        {"tokens_per_s", measured.tokens_per_s},
                        {"flops_per_s_per_rank", measured.flops_per_s_per_rank}},
                       kFastest);
}

// Whatever reads the record later relies on it.
std::string find_forgery(const Experiment& experiment) {
  if (experiment.ranks < 1 || experiment.ranks > kMostRanks) {
    return concat("experiment.ranks is ", experiment.ranks);
  }
  try {
    const StepConfig step = make_step_config(experiment);
    const double samples = static_cast<double>(step.micro_batch) *
                           static_cast<double>(step.accumulation_steps) * experiment.ranks;
    return samples > kMostSamples ? concat("a batch has ", samples, " samples") : "";
  } catch (const std::invalid_argument& fault) {
    return concat("experiment.ds_config: ", fault.what());
  }
}

std::string find_forgery(const OutOfMemory& fault) {
  return fault.rank < 0 || fault.rank > kMostRanks ? concat("rank is ", fault.rank) : "";
}

}  // namespace

std::string find_forgery(std::string_view name, Seconds time) {
  return time >= 0 && time <= kLongest ? "" : concat(name, " is ", time);
}

std::string find_forgery(const Record& record) {
  for (const int rank : record.ranks) {
    if (rank < 0 || rank > kMostRanks) return concat("ranks holds ", rank);
  }
  if (auto fault = find_forgery("started_s", record.started); !fault.empty()) return fault;
  if (auto fault = find_forgery("finished_s", record.finished); !fault.empty()) return fault;
  if (record.finished < record.started) return "finished_s is before started_s";
  if (auto fault = find_forgery(record.experiment); !fault.empty()) return fault;
  if (const auto* measured = std::get_if<Measured>(&record.outcome)) return find_forgery(*measured);
  const auto* memory = std::get_if<OutOfMemory>(&record.outcome);
  return memory == nullptr ? "" : find_forgery(*memory);
}

bool is_folder_name(std::string_view name) {
  return !name.empty() && name.front() != '.' &&
         std::none_of(name.begin(), name.end(),
                      [](char letter) { return letter == '/' || letter == '\0'; });
}

}  // namespace dstune
