#include "core/report/tables/summary.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <variant>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/tables/announced.hpp"
#include "core/report/tables/pareto.hpp"
#include "core/report/tables/ranked.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

namespace {

struct Space {
  int experiments = 0;
  const Record* best = nullptr;
};

std::string space_of(const Experiment& experiment) {
  return concat("z", make_step_config(experiment).stage);
}

void add(Space& space, const Record& record, Metric metric) {
  if (measured_of(record) == nullptr) return;
  if (space.best == nullptr || comes_before(metric, record, *space.best)) space.best = &record;
}

void add_row(Table& table, const std::string& name, const Space& space, Metric metric) {
  const bool found = space.best != nullptr;
  table.add_row({name, concat(space.experiments),
                 found ? concat(metric_value(metric, *measured_of(*space.best))) : "",
                 found ? space.best->experiment.name : ""});
}

std::string spaces_table(const std::vector<Record>& records,
                         const std::vector<Record>& configurations, Metric metric,
                         const Record* best) {
  std::map<std::string, Space> spaces;
  Space global;
  for (const auto& record : records) {
    ++spaces[space_of(record.experiment)].experiments;
    ++global.experiments;
  }
  for (const auto& record : configurations) {
    add(spaces[space_of(record.experiment)], record, metric);
    add(global, record, metric);
  }
  if (best != nullptr && measured_of(*best) != nullptr) {
    for (Space* space : {&global, &spaces[space_of(best->experiment)]}) space->best = best;
  }
  Table table({{"tuning_space", Table::Align::left},
               {"num_experiments"},
               {"best_metric_val"},
               {"best_exp_name", Table::Align::left}});
  for (const auto& [name, space] : spaces) add_row(table, name, space, metric);
  add_row(table, "global", global, metric);
  return table.to_string();
}

// " It was chosen by preset cpu-gloo: ..."; "" where it was by a profile.
std::string preset_text(const Experiment& best) {
  const HostOverhead& overhead = best.settings.host_overhead;
  const std::string cost = preset_cost(overhead);
  return cost.empty() ? "" : concat(" It was chosen by ", describe(overhead), ": ", cost, ".");
}

std::string optimal_line(const Experiment& best, const std::string& result_dir, bool provisional) {
  const StepConfig step = make_step_config(best);
  return concat(best.name,
                provisional ? " is the provisional setup: the best before the interruption ("
                            : " is the optimal setup after tuning (",
                "ZeRO stage ", step.stage, ", micro-batch size ", step.micro_batch,
                ", gradient accumulation steps ", step.accumulation_steps,
                step.checkpointing.is_on()
                    ? concat(", activation checkpointing: ", describe(step.checkpointing))
                    : "",
                tuned_sequence_length(best.ds_config.json())
                    ? concat(", sequence length ", best.settings.sequence_length)
                    : "",
                "). The exp result is at ", result_dir, ".", preset_text(best), "\n");
}

// The figures of the optimum, with what they are.
std::string figures_line(const Announced& best) {
  const std::string figures = figures_text(best);
  if (figures.empty()) return "";
  return concat("It takes ", figures,
                best.runs > 1
                    ? ": the mean of its repetitions, excluding the run by which it was chosen"
                    : "",
                ".\n");
}

// The lines on lengths; "" unless they vary.
std::string varying_lines(const Record& best) {
  const auto* measured = std::get_if<Measured>(&best.outcome);
  if (measured == nullptr || !measured->varying) return "";
  const VaryingSteps& steps = *measured->varying;
  const double padding = 1 - steps.mean_real_tokens / steps.mean_padded_tokens;
  return concat("Lengths: ", describe(best.experiment.settings.lengths), ".\nOf ", measured->steps,
                " steps the mean takes ", format_seconds(steps.mean_step_time), ", P95 ",
                format_seconds(steps.p95_step_time), "; mean throughput ",
                fixed(measured->tokens_per_s, 1), " tokens/s without and ",
                fixed(steps.padded_tokens_per_s, 1), " with padding (", fixed(100 * padding, 1),
                " % of what is computed), 95 % of the steps at least ",
                fixed(steps.p95_tokens_per_s, 1), ".\n");
}

}  // namespace

bool is_beside_search(const Experiment& experiment) {
  return experiment.measures_machine || experiment.is_reference;
}

std::vector<Record> tuning_records(const std::vector<Record>& records) {
  std::vector<Record> kept;
  for (const auto& record : records) {
    const Experiment& experiment = record.experiment;
    if (experiment.name != kProfileName && !is_beside_search(experiment)) kept.push_back(record);
  }
  return kept;
}

std::string summary_text(const std::vector<Record>& records, Metric metric, const Record* best,
                         const std::string& result_dir, Seconds duration, bool provisional,
                         const std::vector<std::string>& notes) {
  const std::vector<Announced> configurations = announced(records);
  const std::vector<Record> figures = records_of(configurations);
  const auto chosen = std::ranges::find_if(configurations, [&](const Announced& each) {
    return best != nullptr && each.record.experiment.name == best->experiment.name;
  });
  if (chosen != configurations.end()) best = &chosen->record;
  std::string text = spaces_table(records, figures, metric, best);
  text += concat("\nbest_metric_val is ", metric_key(metric),
                 metric == Metric::throughput ? " in samples/s"
                 : metric == Metric::tokens   ? " without padding"
                 : metric == Metric::latency  ? " in us per optimizer step"
                                              : " in FLOP/s",
                 ".\n");
  text += best != nullptr ? optimal_line(best->experiment, result_dir, provisional)
                          : "No optimal setup is found. Please check that experiments were run "
                            "successfully.\n";
  if (chosen != configurations.end()) text += figures_line(*chosen);
  if (best != nullptr) text += varying_lines(*best);
  const std::string front = pareto_table(figures, metric);
  if (!front.empty()) {
    text += concat("\nNo other experiment is both faster and smaller than one of these:\n\n", front,
                   "\n");
  }
  for (const auto& note : notes) text += concat("Note: ", note, ".\n");
  text += concat(
      provisional ? "Tuning was interrupted (--resume continues) after " : "Tuning completed in ",
      duration_text(duration), ". Total number of experiments: ", records.size(), ".\n");
  return text;
}

std::string duration_text(Seconds duration) {
  const auto total = std::llround(std::max(duration, 0.0) * 1e6);
  const auto microseconds = total % 1'000'000;
  const auto seconds = total / 1'000'000;
  const auto days = seconds / 86400;
  std::array<char, 64> clock{};
  std::snprintf(clock.data(), clock.size(), "%lld:%02lld:%02lld", seconds / 3600 % 24,
                seconds / 60 % 60, seconds % 60);
  std::string text = clock.data();
  if (microseconds > 0) {
    std::snprintf(clock.data(), clock.size(), ".%06lld", microseconds);
    text += clock.data();
  }
  if (days == 0) return text;
  return concat(days, days == 1 ? " day, " : " days, ", text);
}

}  // namespace dstune
