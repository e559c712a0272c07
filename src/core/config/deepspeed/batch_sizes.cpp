#include "core/config/deepspeed/batch_sizes.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/fixed_batch.hpp"
#include "core/input/coercions.hpp"

namespace dstune {

namespace {

constexpr std::size_t kLongestList = 1000;  // each value is an experiment of every stage

constexpr const char* kTrainBatch = "train_batch_size";
constexpr const char* kMicroBatch = "train_micro_batch_size_per_gpu";
constexpr const char* kAccumulation = "gradient_accumulation_steps";
constexpr const char* kMostPerGpu = "max_train_micro_batch_size_per_gpu";

// An integer or a non-empty list of integers, all within [min, max]; sorted, each once. Empty after
// a fault, which is a problem at its place.
std::vector<std::int64_t> read_integers(const json::value& value, const std::string& pointer,
                                        const KeyRule& rule, std::string_view others,
                                        Problems& problems) {
  if (!value.is_array() || value.get_array().empty()) {
    const auto number = as_integer(value);
    if (number && *number >= rule.min && *number <= rule.max) return {*number};
    problems.add(pointer, concat("is ", describe(value), "; accepted: ", others));
    return {};
  }
  std::vector<std::int64_t> numbers;
  const auto& list = value.get_array();
  if (list.size() > kLongestList) {
    problems.add(pointer, concat("has ", list.size(), " values; accepted: at most ", kLongestList));
    return {};
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto number = check_value(list[i], rule, child(pointer, i), problems);
    if (number) numbers.push_back(number->get_int64());
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::optional<std::int64_t> read_size(const json::object& deepspeed, const char* key,
                                      Problems& problems) {
  const auto* value = deepspeed.if_contains(key);
  if (value == nullptr || value->is_null() || is_auto(*value)) return std::nullopt;
  const auto size = as_integer(*value);
  if (size && *size >= 1 && *size <= kLargestBatch) return size;
  problems.add(child("", key), concat("is ", describe(*value), "; accepted: an integer from 1 to ",
                                      kLargestBatch, ", or \"auto\""));
  return std::nullopt;
}

// The micro-batches of the file; `single` if it is one integer.
std::vector<std::int64_t> read_micro_batches(const json::object& deepspeed, bool& single,
                                             Problems& problems) {
  const auto* value = deepspeed.if_contains(kMicroBatch);
  single = value != nullptr && !value->is_array();
  if (value == nullptr || value->is_null() || is_auto(*value)) return {};
  const auto rule = rules::integer(kMicroBatch, 1, kLargestBatch);
  const std::string others =
      concat("an integer from 1 to ", kLargestBatch, ", a list of them, or \"auto\"");
  return read_integers(*value, child("", kMicroBatch), rule, others, problems);
}

void check_limits(std::int64_t micro_batch, const AutotuningConfig& limits, Problems& problems) {
  const auto low = limits.min_train_micro_batch_size_per_gpu;
  const auto high = limits.max_train_micro_batch_size_per_gpu;
  if (low > high || (micro_batch >= low && micro_batch <= high)) return;
  problems.add(child("", kMicroBatch),
               concat("is ", micro_batch, ", outside the ", low, " to ", high,
                      " of autotuning's {min,max}_train_micro_batch_size_per_gpu"));
}

bool says_most(const json::object& deepspeed) {
  const auto* const autotuning = deepspeed.if_contains("autotuning");
  const auto* const section = autotuning == nullptr ? nullptr : autotuning->if_object();
  return section != nullptr && section->contains(kMostPerGpu);
}

// Who lists micro-batches means them: only a limit that the file itself says is held against them.
void check_list(const json::object& deepspeed, TuningConfig& config, Problems& problems) {
  if (config.micro_batches.empty()) return;
  auto& most = config.autotuning.max_train_micro_batch_size_per_gpu;
  if (!says_most(deepspeed)) most = std::max(most, config.micro_batches.back());
  for (const std::int64_t size : config.micro_batches) {
    check_limits(size, config.autotuning, problems);
  }
}

// Says it where accumulation steps are a number that a search of the batch does not keep.
void warn_of_accumulation(TuningConfig& config) {
  const bool is_listed = !config.micro_batches.empty();
  if (!config.accumulation_is_given || (!is_listed && !config.micro_batch_is_given)) return;
  config.warnings.push_back(concat("/gradient_accumulation_steps ", config.accumulation_steps,
                                   is_listed ? " is not used" : " is not kept",
                                   ": it follows from train_batch_size and each micro-batch",
                                   is_listed ? " of the list" : " that is tried"));
}

// Without the ranks only the file's own numbers are compared; the plan compares them again.
void fix_batch(std::optional<int> ranks, TuningConfig& config, Problems& problems) {
  if (!config.objective.train_batch_size) return;
  const std::int64_t total = *config.objective.train_batch_size;
  auto& most = config.autotuning.max_train_batch_size;
  if (most && *most < total) {
    problems.add(child("", kTrainBatch),
                 concat("is ", total, ", above autotuning.max_train_batch_size, ", *most));
    return;
  }
  const std::string fault = fixed_batch_fault(config, ranks);
  if (!fault.empty()) problems.add(child("", kTrainBatch), fault);
  most = total;
  warn_of_accumulation(config);
}

}  // namespace

std::vector<int> read_stages(const json::object& deepspeed, Problems& problems) {
  std::vector<int> all = {0, 1, 2, 3};
  const auto* zero = deepspeed.if_contains("zero_optimization");
  if (zero == nullptr || !zero->is_object()) return all;
  const auto* value = zero->get_object().if_contains("stage");
  if (value == nullptr || is_auto(*value) || *value == "all") return all;
  const auto rule = rules::integer("", 0, 3);
  const auto numbers = read_integers(coerced(*value, rule), "/zero_optimization/stage", rule,
                                     "0, 1, 2, 3, a list of them, \"all\" or \"auto\"", problems);
  return {numbers.begin(), numbers.end()};
}

void read_batch_sizes(const json::object& deepspeed, std::optional<int> ranks, TuningConfig& config,
                      Problems& problems) {
  bool single = false;
  const auto micro_batches = read_micro_batches(deepspeed, single, problems);
  const auto total = read_size(deepspeed, kTrainBatch, problems);
  if (config.objective.fixed_batch.value_or(true)) config.objective.train_batch_size = total;
  const auto accumulation = read_size(deepspeed, kAccumulation, problems);
  if (single && !micro_batches.empty()) {
    config.start_micro_batch = micro_batches.front();
    config.micro_batch_is_given = true;
    check_limits(config.start_micro_batch, config.autotuning, problems);
  } else {
    config.micro_batches = micro_batches;
    config.start_micro_batch = micro_batches.empty() ? 1 : micro_batches.front();
    check_list(deepspeed, config, problems);
  }
  config.accumulation_is_given = accumulation.has_value();
  config.accumulation_steps = accumulation.value_or(1);
  fix_batch(ranks, config, problems);
}

}  // namespace dstune
