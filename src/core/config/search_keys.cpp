#include "core/config/search_keys.hpp"

#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/autotuning_section.hpp"

namespace dstune {
namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr const char* kObjective = "/dstune/objective";
constexpr std::string_view kObjectives = "throughput|latency|flops|tokens";

constexpr KeyRule kObjectiveRules[] = {
    choice("metric", kObjectives),
    boolean("fixed_batch"),
    any("memory_headroom"),
};
constexpr Section kObjectiveSection{.rules = kObjectiveRules};

void read_time_budget(const json::value& value, TuningConfig& config, Problems& problems) {
  if (value.is_string()) config.time_budget = parse_seconds(std::string_view(value.get_string()));
  if (config.time_budget && *config.time_budget > 0) return;
  problems.add("/dstune/time_budget",
               concat("is ", describe(value),
                      "; accepted: a time above 0 such as \"90s\", \"20min\" or \"1h 30min\""));
}

void read_headroom(const json::value& value, Bytes& headroom, Problems& problems) {
  std::optional<Bytes> size;
  if (value.is_string()) {
    size = parse_bytes(std::string_view(value.get_string()));
  } else if (const auto bytes = as_integer(value); bytes && *bytes >= 0) {
    size = static_cast<Bytes>(*bytes);
  }
  if (size) {
    headroom = *size;
    return;
  }
  problems.add(child(kObjective, "memory_headroom"),
               concat("is ", describe(value),
                      "; accepted: a size such as \"2GiB\", or an integer of bytes"));
}

void read_objective(const json::value& value, TuningConfig& config, Problems& problems) {
  std::string metric;
  if (value.is_string()) {
    const auto checked = check_value(value, choice("objective", kObjectives), kObjective, problems);
    if (checked) config.objective.metric = metric_of(std::string_view(checked->get_string()));
    return;
  }
  const SectionReader reader(value, kObjectiveSection, kObjective, problems);
  reader.read("metric", metric);
  if (!metric.empty()) config.objective.metric = metric_of(metric);
  reader.read("fixed_batch", config.objective.fixed_batch);
  if (const auto* headroom = reader.find("memory_headroom")) {
    read_headroom(*headroom, config.objective.memory_headroom, problems);
  }
}

}  // namespace

void read_search_keys(const SectionReader& reader, TuningConfig& config, Problems& problems) {
  reader.read("tuner", config.tuner);
  reader.read("stop_at_chance", config.stop_at_chance);
  if (const auto* budget = reader.find("time_budget")) {
    read_time_budget(*budget, config, problems);
  }
  if (const auto* objective = reader.find("objective")) {
    read_objective(*objective, config, problems);
  }
}

void complete_objective(const json::object& deepspeed, TuningConfig& config, Problems& problems) {
  Objective& objective = config.objective;
  if (objective.metric) config.autotuning.metric = *objective.metric;
  if (!config.sequence_lengths.empty() && config.autotuning.metric == Metric::throughput) {
    config.autotuning.metric = Metric::tokens;  // samples of different lengths are unlike
  }
  const auto* total = deepspeed.if_contains("train_batch_size");
  if (objective.fixed_batch != true || (total != nullptr && as_integer(*total))) return;
  problems.add(child(kObjective, "fixed_batch"),
               "is true, but the file has no train_batch_size; accepted: true with one");
}

}  // namespace dstune
