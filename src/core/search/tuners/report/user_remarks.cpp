#include "core/search/tuners/report/user_remarks.hpp"

#include <cstdint>
#include <optional>
#include <variant>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/tables/speedup.hpp"
#include "core/search/tuners/baseline.hpp"

namespace dstune {
namespace {

constexpr const char* kHowToKeep = "give train_batch_size (or --train-batch-size) to keep yours";

/// The batch of the file's own numbers on these ranks; none where it leaves the micro-batch open.
std::optional<std::int64_t> own_batch(const TuningConfig& config, int group_size) {
  if (!config.micro_batch_is_given) return std::nullopt;
  return config.start_micro_batch * config.accumulation_steps * group_size;
}

const Record* baseline_record(const TuningConfig& config, int group_size,
                              const std::vector<Record>& records) {
  const auto baseline = baseline_of(config, group_size);
  return baseline ? find_configuration(records, baseline->ds_config) : nullptr;
}

}  // namespace

std::string free_batch_text(const TuningConfig& config) {
  if (config.objective.train_batch_size) return "";
  return concat("the global batch is free: the search chooses it; ", kHowToKeep);
}

std::string batch_remark(const TuningConfig& config, int group_size, const Record& best) {
  if (config.objective.train_batch_size) return "";
  const auto samples = make_step_config(best.experiment).train_batch(best.experiment.ranks);
  const auto own = own_batch(config, group_size);
  return concat("the batch was free: the optimum trains ", samples, " samples a step",
                own && *own != samples ? concat(", your file's numbers give ", *own) : "", "; ",
                kHowToKeep);
}

std::string baseline_name(const TuningConfig& config, int group_size,
                          const std::vector<Record>& records) {
  const Record* const baseline = baseline_record(config, group_size, records);
  return baseline == nullptr ? "" : baseline->experiment.name;
}

std::string baseline_remark(const TuningConfig& config, int group_size,
                            const std::vector<Record>& records, const Record* best) {
  const Record* const baseline = baseline_record(config, group_size, records);
  if (baseline == nullptr) return "";
  const std::string& name = baseline->experiment.name;
  if (std::holds_alternative<OutOfMemory>(baseline->outcome)) {
    return concat("your configuration, ", name, ", does not fit: ", describe(baseline->outcome));
  }
  if (measured_of(*baseline) == nullptr) {
    return concat("your configuration, ", name,
                  ", could not be measured: ", describe(baseline->outcome));
  }
  if (best == nullptr) return "";
  if (best->experiment.ds_config == baseline->experiment.ds_config) {
    return concat("your configuration, ", name, ", is the best found");
  }
  const auto over = speedup(records, config.autotuning.metric, best->experiment.name, name);
  if (!over) return "";
  const bool may_be_equal = over->interval && over->ratio * (1 - *over->interval) <= 1 &&
                            over->ratio * (1 + *over->interval) >= 1;
  return concat("the optimum, ", best->experiment.name, ", is ", to_text(*over),
                " your configuration, ", name, over->interval ? " (95 %)" : "",
                may_be_equal ? ", so not distinguishable from it" : "");
}

}  // namespace dstune
