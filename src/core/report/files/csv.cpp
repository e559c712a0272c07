#include "core/report/files/csv.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

namespace {

using Row = std::vector<std::pair<std::string, std::string>>;  // title, cell

std::string value_text(const json::value* value) {
  if (value == nullptr || value->is_null()) return "";
  return value->is_string() ? std::string(value->get_string()) : to_json_text(*value, 0);
}

const char* yes_or_no(bool value) { return value ? "true" : "false"; }

bool is_in_every_table(const ResultAxis& axis) {
  constexpr std::string_view kPointers[] = {"/zero_optimization/stage",
                                            "/train_micro_batch_size_per_gpu",
                                            "/gradient_accumulation_steps", "/ranks"};
  return std::ranges::find(kPointers, axis.pointer) != std::end(kPointers);
}

void add_verdict(const ResultRow& result, std::size_t position, Row& row) {
  row.emplace_back("name", result.figures.record.experiment.name);
  row.emplace_back("position", concat(position));
  row.emplace_back("optimum", yes_or_no(result.is_optimum));
  row.emplace_back("note", result.note);
  row.emplace_back("pareto", yes_or_no(result.is_on_front));
  row.emplace_back("tie", yes_or_no(result.is_tie));
  row.emplace_back("runs", concat(result.figures.runs));
}

void add_experiment(const Record& record, const std::vector<ResultAxis>& settings, Row& row) {
  const Experiment& experiment = record.experiment;
  const StepConfig step = make_step_config(experiment);
  row.emplace_back("zero_stage", concat(step.stage));
  row.emplace_back("train_micro_batch_size_per_gpu", concat(step.micro_batch));
  row.emplace_back("gradient_accumulation_steps", concat(step.accumulation_steps));
  row.emplace_back("train_batch_size", concat(step.train_batch(experiment.ranks)));
  row.emplace_back("ranks", concat(experiment.ranks));
  for (const ResultAxis& axis : settings) {
    if (!is_in_every_table(axis)) row.emplace_back(column_name(axis), axis_value(axis, experiment));
  }
  std::vector<std::string> world_ranks;
  for (const int rank : record.ranks) world_ranks.push_back(concat(rank));
  row.emplace_back("world_ranks", join(world_ranks, " "));
  row.emplace_back("started_s", to_json_text(record.started, 0));
  row.emplace_back("finished_s", to_json_text(record.finished, 0));
}

void add_varying(const json::object& outcome, Row& row) {
  const auto* varying = outcome.if_contains("varying_steps");
  for (const char* key : {"mean_step_time_s", "p95_step_time_s", "mean_real_tokens",
                          "mean_padded_tokens", "padded_tokens_per_s", "p95_tokens_per_s"}) {
    const auto* value = varying == nullptr ? nullptr : varying->as_object().if_contains(key);
    row.emplace_back(key, value_text(value));
  }
}

void add_outcome(const Announced& figures, Row& row) {
  const Outcome& outcome = figures.record.outcome;
  const json::object content = to_json(outcome);
  row.emplace_back("status", value_text(content.if_contains("status")));
  row.emplace_back("reason", std::holds_alternative<Measured>(outcome) ? "" : describe(outcome));
  row.emplace_back("steps", value_text(content.if_contains("steps")));
  const auto* step_time = content.if_contains("step_time_s");
  for (const char* key : {"median", "min", "max"}) {
    const auto* value = step_time == nullptr ? nullptr : step_time->as_object().if_contains(key);
    row.emplace_back(concat("step_time_", key, "_s"), value_text(value));
  }
  row.emplace_back("noise_percent", value_text(content.if_contains("noise_percent")));
  const auto* measured = std::get_if<Measured>(&outcome);
  const auto& interval = figures.interval;
  row.emplace_back("interval_percent", interval ? fixed(*interval * 100, 3) : "");
  for (const char* key :
       {"forward_time_s", "backward_time_s", "optimizer_time_s", "communication_time_s",
        "samples_per_s", "tokens_per_s", "flops_per_s_per_rank", "first_loss", "last_loss",
        "peak_memory_bytes", "peak_active_bytes", "peak_reserved_bytes"}) {
    row.emplace_back(key, value_text(content.if_contains(key)));
  }
  const Bytes on_host = measured == nullptr ? 0 : measured->peak_host_memory.held;
  row.emplace_back("peak_host_memory_bytes", measured == nullptr ? "" : concat(on_host));
  const auto* peaks = content.if_contains("peak_memory_bytes_by_category");
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = name_of(static_cast<MemoryCategory>(i));
    const auto* value = peaks == nullptr ? nullptr : peaks->as_object().if_contains(category);
    row.emplace_back(concat("peak_", category, "_bytes"), value_text(value));
  }
  for (const char* key : {"setup_time_s", "warmup_time_s", "measure_time_s"}) {
    row.emplace_back(key, value_text(content.if_contains(key)));
  }
  add_varying(content, row);
}

Row make_row(const ResultRow& result, std::size_t position,
             const std::vector<ResultAxis>& settings) {
  Row row;
  add_verdict(result, position, row);
  add_experiment(result.figures.record, settings, row);
  add_outcome(result.figures, row);
  return row;
}

template <class Select>
std::string line_of(const Row& row, Select select) {
  std::vector<std::string> fields;
  for (const auto& cell : row) fields.push_back(csv_field(select(cell)));
  return join(fields, ",") + "\r\n";
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string to_csv(const std::vector<ResultRow>& rows, const std::vector<ResultAxis>& settings) {
  std::string text =
      line_of(make_row({}, 0, settings), [](const auto& cell) { return cell.first; });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text +=
        line_of(make_row(rows[i], i + 1, settings), [](const auto& cell) { return cell.second; });
  }
  return text;
}

}  // namespace dstune
