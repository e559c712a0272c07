#include "core/search/tuners/report/plan_report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "core/config/overrides.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/parameter_text.hpp"
#include "core/report/tables/table.hpp"
#include "core/search/feasibility/memory_beside_plan.hpp"
#include "core/search/tuners/report/funnel_report.hpp"
#include "core/search/tuners/report/offload_remarks.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {
namespace {

std::string cell(Bytes size, bool is_known) { return is_known ? format_bytes(size) : "-"; }

/// The columns of the stages' table that it has where some stage has a number for them.
struct MemoryColumns {
  bool in_flight = false;
  bool reserved = false;
  bool host = false;
  bool drive = false;
};

std::vector<Table::Column> stage_columns(const MemoryColumns& with) {
  std::vector<Table::Column> columns = {{"stage"},       {"parameters"}, {"gradients"},
                                        {"optimizer"},   {"buckets"},    {"activations"},
                                        {"temporaries"}, {"peak"}};
  if (with.in_flight) columns.push_back({"in flight"});
  if (with.reserved) columns.push_back({"reserved"});
  if (with.host) columns.push_back({"host"});
  if (with.drive) columns.push_back({"drive"});
  columns.push_back({"feasible", Table::Align::left});
  columns.push_back({"max micro-batch"});
  return columns;
}

/// What is missing, and whether it is the rounding of what is pinned alone.
std::string describe(const HostShortage& shortage, const StagePlan& plan) {
  const Bytes as_asked = plan.peak_host.at_peak.total();
  const std::string text =
      concat("stage ", plan.stage, " does not fit into ", description_of(shortage.store),
             ": a rank needs ", format_bytes(shortage.need), " of ", format_bytes(shortage.limit));
  const bool may_round_nothing = shortage.store == Store::host && !plan.pins_in_any_case &&
                                 as_asked != plan.peak_host.held && as_asked <= shortage.limit;
  if (!may_round_nothing) return concat(text, "\n");
  return concat(text, "; with pin_memory false, which rounds nothing up, ", format_bytes(as_asked),
                " at most, which fits\n");
}

std::string format_stages(const std::vector<StagePlan>& stages) {
  const MemoryColumns with{
      .in_flight = std::ranges::any_of(
          stages, [](const StagePlan& plan) { return plan.peak.in_flight() > 0; }),
      .reserved =
          std::ranges::any_of(stages, [](const StagePlan& plan) { return plan.peak.reserved > 0; }),
      .host = std::ranges::any_of(stages,
                                  [](const StagePlan& plan) { return plan.peak_host.held > 0; }),
      .drive = std::ranges::any_of(stages,
                                   [](const StagePlan& plan) { return plan.peak_host.drive > 0; })};
  Table table(stage_columns(with));
  std::string remarks;
  for (const auto& plan : stages) {
    std::vector<std::string> row = {std::to_string(plan.stage)};
    const bool is_known = plan.unsupported.empty();
    for (const Bytes size : plan.peak.categories.bytes) row.push_back(cell(size, is_known));
    row.push_back(cell(plan.peak.allocated, is_known));
    if (with.in_flight) row.push_back(cell(plan.peak.in_flight(), is_known));
    if (with.reserved) row.push_back(cell(plan.peak.reserved, is_known));
    if (with.host) row.push_back(cell(plan.peak_host.held, is_known));
    if (with.drive) row.push_back(cell(plan.peak_host.drive, is_known));
    row.emplace_back(plan.feasible ? "yes" : "no");
    row.push_back(plan.feasible ? std::to_string(plan.max_micro_batch) : "-");
    table.add_row(std::move(row));
    if (!plan.unsupported.empty()) {
      remarks += concat("stage ", plan.stage, " cannot run: ", plan.unsupported, '\n');
    }
    for (const HostShortage& shortage : plan.shortages) remarks += describe(shortage, plan);
    if (!plan.advice.empty()) remarks += concat("stage ", plan.stage, ": ", plan.advice, '\n');
  }
  if (with.host) {
    remarks +=
        "Host is what a rank's tensors take of its host's memory: what is pinned is rounded up to "
        "a power of two for each tensor, as PyTorch does by default.\n";
  }
  if (with.in_flight) {
    remarks +=
        "The peak is what is allocated. In flight is the most that may be active beside it, where "
        "the host runs far ahead of the device; it costs a wait where there is no room.\n";
  }
  return table.to_string() + remarks;
}

/// None if the step of experiment number `i` was not foretold.
const Prediction* prediction_of(const Foretold* foretold, std::size_t i) {
  if (foretold == nullptr || i >= foretold->steps.size() || !foretold->steps[i]) return nullptr;
  return &*foretold->steps[i];
}

/// What a ratio below 1 comes to in the experiments, each text once.
std::string ratio_lines(const std::vector<Experiment>& experiments) {
  std::set<std::string> lines;
  for (const Experiment& experiment : experiments) {
    if (const std::string remark = ratio_remark(experiment); !remark.empty()) {
      lines.insert(concat(remark, '\n'));
    }
  }
  return join(std::vector<std::string>(lines.begin(), lines.end()), "");
}

std::string format_experiments(const std::vector<Experiment>& experiments,
                               const Foretold* foretold) {
  std::vector<Table::Column> columns = {{"experiment", Table::Align::left},
                                        {"stage"},
                                        {"micro-batch"},
                                        {"accumulation"},
                                        {"train batch"}};
  if (foretold != nullptr) {
    columns.push_back({"step"});
    columns.push_back({"90 % between"});
    columns.push_back({"samples/s"});
  }
  Table table(columns);
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const StepConfig step = make_step_config(experiments[i]);
    const auto samples = step.train_batch(experiments[i].ranks);
    std::vector<std::string> row = {experiments[i].name, concat(step.stage),
                                    concat(step.micro_batch), concat(step.accumulation_steps),
                                    concat(samples)};
    if (const Prediction* prediction = prediction_of(foretold, i)) {
      const PredictionInterval interval = interval_of(*prediction);
      row.push_back(format_seconds(prediction->step_time));
      row.push_back(concat(format_seconds(interval.low), ", ", format_seconds(interval.high)));
      row.push_back(fixed(static_cast<double>(samples) / prediction->step_time, 1));
    } else if (foretold != nullptr) {
      row.insert(row.end(), 3, "-");
    }
    table.add_row(std::move(row));
  }
  return concat(
      table.to_string(), ratio_lines(experiments),
      foretold == nullptr ? "" : concat("\nSteps as predicted from ", foretold->origin, "\n"));
}

json::array to_json(const std::vector<HostShortage>& shortages) {
  json::array list;
  for (const HostShortage& shortage : shortages) {
    list.push_back({{"tier", name_of(shortage.store)},
                    {"needed_bytes", shortage.need},
                    {"limit_bytes", shortage.limit}});
  }
  return list;
}

json::object stage_to_json(const StagePlan& plan) {
  json::object object;
  object["stage"] = plan.stage;
  object["memory_bytes_per_rank"] = plan.memory_bytes_per_rank;
  object["activation_bytes_per_micro_batch"] = plan.activation_bytes_per_micro_batch;
  object["feasible"] = plan.feasible;
  object["max_micro_batch"] = plan.max_micro_batch;
  object["peak_memory_bytes"] = plan.peak.allocated;
  object["peak_active_bytes"] = plan.peak.active;
  object["peak_reserved_bytes"] = plan.peak.reserved;
  if (plan.peak_host.held > 0) {
    object["peak_host_memory_bytes"] = plan.peak_host.held;
    object["host_memory_at_peak_bytes"] = {{"pinned", plan.peak_host.at_peak.pinned},
                                           {"pageable", plan.peak_host.at_peak.pageable}};
    if (plan.peak_host.at_peak.locked > 0) {
      object["host_memory_at_peak_bytes"].as_object()["locked"] = plan.peak_host.at_peak.locked;
    }
    if (plan.peak_host.drive > 0) object["peak_drive_bytes"] = plan.peak_host.drive;
    object["fits_on_host"] = plan.fits_on_host();
    if (!plan.fits_on_host()) object["shortages"] = to_json(plan.shortages);
  }
  if (!plan.unsupported.empty()) object["unsupported"] = plan.unsupported;
  if (!plan.advice.empty()) object["advice"] = plan.advice;
  return object;
}

/// The most experiments of a pool that are shown; the pool may be huge.
constexpr std::size_t kMostShown = 100;

std::string experiments_title(std::size_t count, const Pool* pool) {
  if (pool == nullptr) {
    return "\nExperiments, if every one runs and none is better than another\n\n";
  }
  if (count <= kMostShown) return "\nExperiments to choose from\n\n";
  return concat("\nExperiments to choose from, the first ", kMostShown, " of ", count, "\n\n");
}

std::string precision_line(const TuningConfig& config) {
  const std::string text = open_precision_text(config.open_precision);
  return text.empty() ? "" : concat("precision     ", text, "\n");
}

std::string checkpointing_line(const TuningConfig& config) {
  const auto& checkpointing = config.deepspeed.step().checkpointing;
  if (!checkpointing.is_on()) return "";
  return concat("checkpointing ", describe(checkpointing), "\n");
}

/// Where a limit comes from that is not the user's: "79.10 GiB free on NVIDIA H100 of this machine,
/// less ...".
std::string limit_origin(const TuningConfig& config, const Machine& machine) {
  const Bytes headroom = config.objective.memory_headroom;
  return concat(machine.memory_limit_origin,
                headroom == 0 ? "" : concat(", ", format_bytes(headroom), " memory_headroom"));
}

std::string limit_text(const TuningConfig& config, const Machine& machine) {
  const Bytes limit = config.settings.memory_limit;
  if (limit == 0) return "not known: every stage counts as feasible (--memory-limit sets it)";
  return concat(
      format_bytes(limit), " per rank",
      machine.memory_limit_origin.empty() ? "" : concat(": ", limit_origin(config, machine)));
}

/// Whether a stage, or a configuration of the spaces, has files on a drive.
bool uses_drive(const std::vector<StagePlan>& stages, const Pool* pool) {
  return std::ranges::any_of(stages,
                             [](const StagePlan& plan) { return plan.peak_host.drive > 0; }) ||
         (pool != nullptr &&
          (pool->full[number_of(Store::drive)] ||
           std::ranges::any_of(pool->candidates, [](const PooledCandidate& candidate) {
             return candidate.dry.peak_host_memory.drive > 0;
           })));
}

/// The limits of a rank beside its memory, of which the drive's is asked for where it is used.
std::string node_limit_lines(const RunSettings& settings, bool uses_drive) {
  std::string lines;
  if (settings.pinned_limit > 0) {
    lines += concat("pinned memory ", format_bytes(settings.pinned_limit), " per rank\n");
  }
  if (settings.drive_limit > 0) {
    lines += concat("drive         ", format_bytes(settings.drive_limit), " per rank\n");
  } else if (uses_drive) {
    lines += "drive         not known: dstune.drive_limit sets what a node has\n";
  }
  return lines;
}

std::string host_limit_line(const TuningConfig& config, const std::vector<StagePlan>& stages) {
  const RunSettings& settings = config.settings;
  const bool matters = std::ranges::any_of(stages, [](const StagePlan& plan) {
    return plan.peak_host.held > 0 || !plan.advice.empty();
  });
  if (settings.is_one_memory() || !matters) return "";
  return concat("host memory   ",
                settings.host_memory_limit == kNoLimit
                    ? "not known: dstune.host_memory_limit sets what a node has"
                    : concat(format_bytes(settings.host_memory_limit), " per rank"),
                "\n");
}

}  // namespace

std::string format_plan_table(const TuningConfig& config, const Machine& machine,
                              const std::vector<StagePlan>& stages,
                              const std::vector<Experiment>& experiments, const Pool* pool,
                              const Foretold* foretold) {
  const auto info = predict_model_info(config, stages);
  const auto& settings = config.settings;
  return concat(
      precision_line(config), "model         ", settings.model.name,
      config.model_source.empty() ? "" : concat(" (", config.model_source, ")"), ", ",
      parameter_text(info.num_params, info.trainable_num_params), "\n",
      settings.loss == LossSettings{} ? ""
                                      : concat("loss          ", describe(settings.loss), "\n"),
      checkpointing_line(config), "ranks         ", machine.group_size, " per experiment\n",
      "memory limit  ", limit_text(config, machine), "\n", host_limit_line(config, stages),
      node_limit_lines(settings, uses_drive(stages, pool)), "activations   ",
      format_bytes(info.activation_bytes_per_micro_batch),
      " per rank and sample of the micro-batch, sequence length ", settings.sequence_length,
      settings.lengths.varies() ? concat(", the longest: ", describe(settings.lengths)) : "",
      "\n\nMemory per rank at micro-batch 1: the peak of each category, and of all\n\n",
      format_stages(stages), describe_beside_plan(settings, machine.group_size),
      experiments_title(experiments.size(), pool),
      format_experiments(shown_experiments(experiments, pool), foretold),
      pool == nullptr || pool->funnel.empty()
          ? ""
          : concat("\nSearch spaces: how many configurations are left after each "
                   "step\n\n",
                   format_funnel(*pool)));
}

std::vector<Experiment> shown_experiments(const std::vector<Experiment>& experiments,
                                          const Pool* pool) {
  const std::size_t count =
      pool == nullptr ? experiments.size() : std::min(experiments.size(), kMostShown);
  return {experiments.begin(), experiments.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::string format_plan_json(const TuningConfig& config, const Machine& machine,
                             const std::vector<StagePlan>& stages,
                             const std::vector<Experiment>& experiments, const Pool* pool,
                             const Foretold* foretold) {
  const auto info = predict_model_info(config, stages);
  json::object plan;
  if (!config.open_precision.empty()) plan["assumed_precision"] = config.open_precision;
  plan["num_params"] = info.num_params;
  plan["trainable_num_params"] = info.trainable_num_params;
  plan["world_size"] = machine.group_size;
  if (config.settings.memory_limit != 0) {
    plan["memory_limit_bytes"] = config.settings.memory_limit;
    if (!machine.memory_limit_origin.empty()) {
      plan["memory_limit_origin"] = limit_origin(config, machine);
    }
  }
  if (!config.settings.is_one_memory() && config.settings.host_memory_limit != kNoLimit) {
    plan["host_memory_limit_bytes"] = config.settings.host_memory_limit;
  }
  if (config.settings.pinned_limit > 0) plan["pinned_limit_bytes"] = config.settings.pinned_limit;
  if (config.settings.drive_limit > 0) plan["drive_limit_bytes"] = config.settings.drive_limit;
  plan["memory_beside_plan_bytes"] =
      sum_of(memory_beside_plan(config.settings, machine.group_size));
  auto& stage_list = plan["stages"].emplace_array();
  for (const auto& stage : stages) stage_list.push_back(stage_to_json(stage));
  auto& experiment_list = plan["experiments"].emplace_array();
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    json::object object;
    object["name"] = experiments[i].name;
    object["ds_config"] = experiments[i].ds_config.json();
    if (const Prediction* prediction = prediction_of(foretold, i)) {
      const PredictionInterval interval = interval_of(*prediction);
      object["predicted_step_time_s"] = prediction->step_time;
      object["predicted_interval_90_s"] = {interval.low, interval.high};
    }
    experiment_list.push_back(std::move(object));
  }
  if (pool != nullptr) add_funnel(plan, *pool);
  return to_json_text(plan, 2) + '\n';
}

}  // namespace dstune
