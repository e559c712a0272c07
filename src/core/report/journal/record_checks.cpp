#include "core/report/journal/record_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

namespace {

constexpr Seconds kLongestTime = 1e10;  // 300 years
constexpr double kFastest = 1e30;       // samples, tokens or FLOP per second
constexpr int kMostRanks = 1'000'000;
constexpr double kMostSamples = 1e15;                // of one optimizer step
constexpr double kMostCounted = 1e18;                // bytes, elements, calls
constexpr std::int64_t kMostTokens = 1'000'000'000;  // of one sample
constexpr int kMostSteps = 1'000'000'000;
constexpr std::size_t kLongestName = 255;

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
  if (measured.steps < 0 || measured.steps > kMostSteps) {
    return concat("steps is ", measured.steps);
  }
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
                                    kLongestTime);
  if (!fault.empty()) return fault;
  // The values that experiments are ordered by must be numbers.
  for (const double rate :
       {measured.samples_per_s, measured.tokens_per_s, measured.flops_per_s_per_rank}) {
    if (std::isnan(rate)) return "a rate is none";
  }
  const DevicePeaks peaks = measured.device_peaks.value_or(DevicePeaks{});
  return first_outside({{"noise_percent", time.noise_percent},
                        {"gemm_flops_per_s", peaks.gemm_flops_per_s},
                        {"copy_bytes_per_s", peaks.copy_bytes_per_s},
                        {"samples_per_s", measured.samples_per_s},
                        {"tokens_per_s", measured.tokens_per_s},
                        {"flops_per_s_per_rank", measured.flops_per_s_per_rank}},
                       kFastest);
}

// Whatever reads the record later relies on these numbers.
std::string find_forgery(const Experiment& experiment) {
  if (experiment.ranks < 1 || experiment.ranks > kMostRanks) {
    return concat("experiment.ranks is ", experiment.ranks);
  }
  const std::int64_t tokens = experiment.settings.sequence_length;
  if (tokens < 1 || tokens > kMostTokens) return concat("sequence_length is ", tokens);
  try {
    const StepConfig step = make_step_config(experiment);
    const double samples = static_cast<double>(step.micro_batch) *
                           static_cast<double>(step.accumulation_steps) * experiment.ranks;
    return samples > kMostSamples ? concat("a batch has ", samples, " samples") : "";
  } catch (const std::invalid_argument& fault) {
    return concat("experiment.ds_config: ", fault.what());
  }
}

// The ranks that ran the experiment, or may be to blame for its failures.
std::vector<int> ranks_of(const Record& record) {
  std::vector<int> ranks = record.ranks;
  for (const FailedTry& failed : record.failed_tries) {
    ranks.insert(ranks.end(), failed.ranks.begin(), failed.ranks.end());
    for (const auto& culprit : failed.culprits) ranks.push_back(culprit.rank);
  }
  return ranks;
}

std::string find_forgery(const OutOfMemory& fault) {
  return fault.rank < 0 || fault.rank > kMostRanks ? concat("rank is ", fault.rank) : "";
}

// A loss may be negative, a fitted latency too, and a seed is any number.
bool may_be_negative(std::string_view key) {
  return key == "first_loss" || key == "last_loss" || key == "latency_s";
}

bool is_credible(const json::value& number, std::string_view key, bool is_of_user) {
  if (key == "seed") return true;
  const auto value = number.to_number<double>();
  if (!(std::fabs(value) <= kFastest)) return false;
  if (is_of_user) return true;
  // The ledger's counters stop at the largest number that there is.
  constexpr auto kFull = std::numeric_limits<std::uint64_t>::max();
  if (number.is_uint64() && number.get_uint64() == kFull) return true;
  const bool is_counted = number.is_int64() || number.is_uint64();
  return (value >= 0 || may_be_negative(key)) && (!is_counted || value <= kMostCounted);
}

std::string find_forged(const json::value& value, std::string_view key, bool is_of_user);

// A fault's place is written on the way back, since nearly all lines have none.
std::string at_place(const std::string& place, const std::string& fault) {
  return concat(place, fault.starts_with(' ') ? "" : ".", fault);
}

// DeepSpeed's section is the user's, and a model is judged by whether it is that of the run.
std::string find_forged(const json::object& object, std::string_view key, bool is_of_user) {
  for (const auto& member : object) {
    const std::string_view name(member.key());
    if (name == "model" && key == "settings") continue;
    const auto fault = find_forged(member.value(), name, is_of_user || name == "ds_config");
    if (!fault.empty()) return at_place(std::string(name), fault);
  }
  return "";
}

std::string find_forged(const json::value& value, std::string_view key, bool is_of_user) {
  if (value.is_number() && !is_credible(value, key, is_of_user)) {
    return concat(" is ", to_json_text(value, 0));
  }
  if (const auto* array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      const auto fault = find_forged((*array)[i], key, is_of_user);
      if (!fault.empty()) return at_place(std::to_string(i), fault);
    }
  }
  const auto* object = value.if_object();
  return object == nullptr ? "" : find_forged(*object, key, is_of_user);
}

}  // namespace

std::string find_forged_number(const json::object& line) { return find_forged(line, "", false); }

std::string find_forgery(std::string_view name, Seconds time) {
  return time >= 0 && time <= kLongestTime ? "" : concat(name, " is ", time);
}

std::string find_forgery(const Record& record) {
  for (const int rank : ranks_of(record)) {
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
  constexpr unsigned char kBlank = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return letter >= kBlank && letter != kDelete && letter != '/';
         });
}

}  // namespace dstune
