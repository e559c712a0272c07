#include "core/train/rank_report.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <variant>

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

double median(const std::vector<double>& values) { return summarize(values).median; }

// The time of every step is that of its slowest rank, and so is the way in which it was spent;
// tokens and FLOPs are those of all ranks.
RankReport slowest_ranks(const std::vector<RankReport>& reports) {
  RankReport slowest;
  for (std::size_t step = 0; step < reports.front().total.size(); ++step) {
    const RankReport* rank = &reports.front();
    for (const RankReport& report : reports) {
      if (report.total.at(step) > rank->total.at(step)) rank = &report;
    }
    StepReport time;
    time.total = rank->total[step];
    time.forward = rank->forward.at(step);
    time.backward = rank->backward.at(step);
    time.optimizer = rank->optimizer.at(step);
    for (const RankReport& report : reports) {
      time.real_tokens += report.real_tokens.at(step);
      time.padded_tokens += report.padded_tokens.at(step);
      time.flops += report.flops.at(step);
    }
    slowest.add(time, rank->communication.at(step), 0);
  }
  return slowest;
}

void merge_times(const std::vector<RankReport>& reports, const RankReport& slowest,
                 Measured& merged) {
  merged.steps = static_cast<int>(slowest.total.size());
  merged.step_time = summarize(slowest.total);
  merged.forward_time = median(slowest.forward);
  merged.backward_time = median(slowest.backward);
  merged.optimizer_time = median(slowest.optimizer);
  merged.communication_time = median(slowest.communication);
  // One rank's clock counts: the sum over the slowest ranks can be more time than has passed.
  const std::vector<double>& first = reports.front().total;
  merged.measure_time = std::accumulate(first.begin(), first.end(), 0.0);
}

void compute_rates(const Experiment& experiment, const StepConfig& config, Measured& merged) {
  const Seconds time = merged.step_time.median;
  if (time <= 0) return;  // a dry run's clock stands still
  const std::int64_t samples = config.micro_batch * config.accumulation_steps;
  const std::int64_t length = experiment.settings.sequence_length;
  merged.samples_per_s = static_cast<double>(samples * experiment.ranks) / time;
  merged.tokens_per_s = merged.samples_per_s * static_cast<double>(length);
  merged.flops_per_s_per_rank =
      training_flops(experiment.settings.model, samples * length, length) / time;
}

// The median step is not a typical one where lengths vary: rates are those of all steps together.
void compute_varying(const Experiment& experiment, const StepConfig& config,
                     const RankReport& slowest, Measured& merged) {
  std::vector<StepWork> steps;
  for (std::size_t i = 0; i < slowest.total.size(); ++i) {
    steps.push_back({slowest.total[i], slowest.real_tokens[i], slowest.padded_tokens[i]});
  }
  merged.varying = varying_steps(steps);
  const Seconds time = merged.varying->mean_step_time;
  if (time <= 0) return;
  const double ranks = experiment.ranks;
  const auto samples = static_cast<double>(config.train_batch(experiment.ranks));
  const double flops = std::accumulate(slowest.flops.begin(), slowest.flops.end(), 0.0) /
                       static_cast<double>(steps.size());
  merged.samples_per_s = samples / time;
  merged.tokens_per_s = merged.varying->mean_real_tokens / time;
  merged.flops_per_s_per_rank = flops / ranks / time;
}

}  // namespace

void RankReport::add(const StepReport& step, Seconds communication_time, Seconds exposed_time) {
  total.push_back(step.total);
  forward.push_back(step.forward);
  backward.push_back(step.backward);
  optimizer.push_back(step.optimizer);
  communication.push_back(communication_time);
  compute.push_back(step.total - exposed_time);
  real_tokens.push_back(step.real_tokens);
  padded_tokens.push_back(step.padded_tokens);
  flops.push_back(step.flops);
}

std::string to_text(const RankReport& report) {
  const json::object object = {{"total", json::value_from(report.total)},
                               {"forward", json::value_from(report.forward)},
                               {"backward", json::value_from(report.backward)},
                               {"optimizer", json::value_from(report.optimizer)},
                               {"communication", json::value_from(report.communication)},
                               {"compute", json::value_from(report.compute)},
                               {"real_tokens", json::value_from(report.real_tokens)},
                               {"padded_tokens", json::value_from(report.padded_tokens)},
                               {"flops", json::value_from(report.flops)},
                               {"not_finite", report.not_finite},
                               {"own", to_json(Outcome(report.own))}};
  return to_json_text(object, 0);
}

RankReport rank_report_from_text(const std::string& text) {
  try {
    const json::value value = parse_json(text);
    const json::object& object = value.as_object();
    const auto times = [&](const char* key) {
      return json::value_to<std::vector<double>>(object.at(key));
    };
    return {times("total"),
            times("forward"),
            times("backward"),
            times("optimizer"),
            times("communication"),
            times("compute"),
            json::value_to<std::string>(object.at("not_finite")),
            std::get<Measured>(outcome_from_json(object.at("own").as_object())),
            times("real_tokens"),
            times("padded_tokens"),
            times("flops")};
  } catch (const std::exception& fault) {
    throw std::invalid_argument(concat("rank_report_from_text: ", fault.what()));
  }
}

Outcome merge_reports(const std::vector<RankReport>& reports, const Experiment& experiment,
                      const StepConfig& config) {
  Measured merged = reports.front().own;
  merged.first_loss = 0;
  merged.last_loss = 0;
  merged.core_use.clear();
  std::vector<std::optional<DeviceUse>> uses;
  std::vector<std::optional<DevicePeaks>> peaks;
  for (const RankReport& report : reports) {
    if (!report.not_finite.empty()) {
      return Failed{FailureKind::not_finite, report.not_finite};
    }
    const Measured& own = report.own;
    if (own.peak_memory.counted() > merged.peak_memory.counted())
      merged.peak_memory = own.peak_memory;
    merged.peak_host_memory.merge(own.peak_host_memory);
    merged.first_loss += own.first_loss / static_cast<double>(reports.size());
    merged.last_loss += own.last_loss / static_cast<double>(reports.size());
    merged.setup_time = std::max(merged.setup_time, own.setup_time);
    merged.compute_times.push_back(median(report.compute));
    merged.core_use.insert(merged.core_use.end(), own.core_use.begin(), own.core_use.end());
    uses.push_back(own.device_use);
    peaks.push_back(own.device_peaks);
  }
  merged.device_use = merge(uses);
  merged.device_peaks = merge(peaks);
  const RankReport slowest = slowest_ranks(reports);
  merge_times(reports, slowest, merged);
  if (experiment.settings.lengths.varies()) {
    compute_varying(experiment, config, slowest, merged);
  } else {
    compute_rates(experiment, config, merged);
    merged.slow_steps = slow_part(slowest.total);
  }
  return merged;
}

}  // namespace dstune
