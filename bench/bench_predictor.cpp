// How well step times are predicted: each measurement of journals from the others, by physics and
// by least squares on the configurations' raw values.
//
// usage: bench_predictor JOURNAL...     all of one model, machine and number of ranks

#include <chrono>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/files/file.hpp"
#include "core/base/statistics.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/search/predict/dry_step.hpp"
#include "core/search/predict/predictor.hpp"
#include "core/search/predict/run_rates.hpp"

namespace dstune {
namespace {

struct Sample {
  Experiment experiment;
  Measured measured;
};

struct Data {
  std::vector<Sample> samples;
  RunRates rates;  ///< measured, or estimated
};

Seconds time_of(const Sample& sample) { return sample.measured.step_time.median; }

Data read_data(int count, char** paths) {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) {
    auto own = read_own_journal(read_text_file(paths[i]), paths[i]).records;
    records.insert(records.end(), own.begin(), own.end());
  }
  std::vector<Sample> samples;
  for (const Record& record : records) {
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr || measured->machine_rates) continue;
    samples.push_back({record.experiment, *measured});
  }
  const Experiment& first = samples.at(0).experiment;
  const auto rates = run_rates(records, first.ranks);
  std::cout << (rates ? "Measured" : "Estimated") << " rates.\n";
  return {std::move(samples), rates ? *rates : estimated_rates(first.settings)};
}

constexpr std::size_t kValues = 20;
using Values = RealVector<kValues>;

/// What somebody who knows nothing of the step would regress on: sizes by their logarithm, stages
/// and switches as 0 or 1.
Values raw_values(const Experiment& experiment) {
  const StepConfig step = make_step_config(experiment);
  const auto log = [](std::int64_t value) { return std::log(static_cast<double>(value) + 1); };
  const bool sharded = step.stage == 3;
  const double samples = static_cast<double>(step.micro_batch * step.accumulation_steps);
  return {1,
          step.stage == 1 ? 1.0 : 0.0,
          step.stage == 2 ? 1.0 : 0.0,
          sharded ? 1.0 : 0.0,
          static_cast<double>(step.micro_batch),
          static_cast<double>(step.accumulation_steps),
          samples,
          log(step.micro_batch),
          log(step.accumulation_steps),
          log(step.reduce_bucket_size),
          step.overlap_comm ? 1.0 : 0.0,
          step.contiguous_gradients ? 1.0 : 0.0,
          step.round_robin_gradients ? 1.0 : 0.0,
          step.gradient_clipping > 0 ? 1.0 : 0.0,
          sharded ? log(step.prefetch_bucket_size) : 0,
          sharded ? log(step.param_persistence_threshold) : 0,
          sharded ? log(step.max_live_parameters) : 0,
          sharded ? log(step.max_reuse_distance) : 0,
          sharded ? log(step.sub_group_size) : 0,
          sharded ? static_cast<double>(step.accumulation_steps) : 0};
}

/// Least squares of target(time) on raw values but for sample `left_out`, at that sample.
double regress(const std::vector<Sample>& samples, std::size_t left_out,
               const std::function<double(double)>& target) {
  constexpr double kRidge = 1e-6;  // only makes it solvable
  SquareMatrix<kValues> matrix{};
  Values right{};
  for (std::size_t i = 0; i < kValues; ++i) matrix[i][i] = kRidge;
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (row == left_out) continue;
    const Values values = raw_values(samples[row].experiment);
    for (std::size_t i = 0; i < kValues; ++i) {
      right[i] += values[i] * target(time_of(samples[row]));
      for (std::size_t j = 0; j < kValues; ++j) matrix[i][j] += values[i] * values[j];
    }
  }
  return dot(Cholesky(matrix).solve(right), raw_values(samples[left_out].experiment));
}

void print_row(const std::string& name, const std::vector<double>& predicted,
               const std::vector<double>& measured) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(100 * std::fabs(predicted[i] / measured[i] - 1));
  }
  const Summary summary = summarize(errors);
  std::cout << "| " << name << " | " << std::fixed << std::setprecision(1) << summary.median
            << " | " << summary.max << " | " << std::setprecision(3)
            << rank_correlation(predicted, measured) << " |\n";
}

void print_raw(const std::vector<Sample>& samples, const std::vector<double>& measured) {
  std::vector<double> plain;
  std::vector<double> logarithmic;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    plain.push_back(regress(samples, i, [](double time) { return time; }));
    logarithmic.push_back(
        std::exp(regress(samples, i, [](double time) { return std::log(time); })));
  }
  print_row("raw values, least squares of the time", plain, measured);
  print_row("raw values, least squares of its logarithm", logarithmic, measured);
}

StepTimePredictor taught(const std::vector<Sample>& samples, const RunRates& rates) {
  StepTimePredictor predictor(rates);
  for (const Sample& sample : samples) predictor.learn(sample.experiment, sample.measured);
  return predictor;
}

/// Each of the first hundred as it comes, from those before it.
void print_as_they_come(std::vector<Sample> samples, const RunRates& rates) {
  constexpr std::size_t kBlock = 10;
  if (constexpr std::size_t kMost = 100; samples.size() > kMost) samples.resize(kMost);
  StepTimePredictor predictor(rates);
  std::cout << "\n| predicted before it was measured | median error (%) | inside 90 % |\n"
            << "| :-- | --: | --: |\n";
  std::vector<double> errors;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Prediction prediction = predictor.predict(samples[i].experiment);
    predictor.learn(samples[i].experiment, samples[i].measured);
    const PredictionInterval interval = interval_of(prediction);
    const Seconds time = time_of(samples[i]);
    errors.push_back(100 * std::fabs(prediction.step_time / time - 1));
    inside += interval.low <= time && time <= interval.high ? 1 : 0;
    if (errors.size() < kBlock && i + 1 < samples.size()) continue;
    std::cout << "| " << i + 2 - errors.size() << " to " << i + 1 << " | " << std::setprecision(1)
              << summarize(errors).median << " | " << inside << " of " << errors.size() << " |\n";
    errors.clear();
    inside = 0;
  }
}

void print_coefficients(const std::vector<Sample>& samples, const RunRates& rates) {
  std::vector<Observation> seen;
  for (const Sample& sample : samples) {
    const auto dry = dry_step_time(sample.experiment, rates);
    if (dry) seen.push_back({.dry = *dry, .measured = time_of(sample)});
  }
  const Correction correction(seen);
  std::cout << "\n| part of the time | coefficient | mean share (%) |\n| :-- | --: | --: |\n";
  for (std::size_t part = 0; part < kStepParts; ++part) {
    const double coefficient = correction.coefficients()[part];
    double share = 0;
    for (const Observation& each : seen) {
      const Seconds dry = part == index_of(StepPart::constant) ? 1 : each.dry.parts[part];
      share += 100 * coefficient * dry / each.measured / static_cast<double>(seen.size());
    }
    std::cout << "| " << name_of(static_cast<StepPart>(part)) << " | " << std::setprecision(3)
              << coefficient << " | " << std::setprecision(1) << share << " |\n";
  }
}

/// All values within `object`, by their JSON pointers.
std::map<std::string, std::string> leaves_of(const json::object& object, const std::string& path) {
  std::map<std::string, std::string> leaves;
  for (const auto& member : object) {
    const std::string pointer = path + "/" + std::string(member.key());
    leaves[pointer] = to_json_text(member.value(), 0);
    if (member.value().is_object()) leaves.merge(leaves_of(member.value().get_object(), pointer));
  }
  return leaves;
}

/// Measured beside predicted, in each stage by every setting that has more than one value.
void print_residuals(const std::vector<Sample>& samples, const StepTimePredictor& predictor) {
  constexpr const char* kStage = "/zero_optimization/stage";
  std::map<std::string, std::map<std::string, std::vector<double>>> residuals;
  for (const Sample& sample : samples) {
    const auto prediction = predictor.without_own(sample.experiment);
    if (!prediction) continue;
    const auto leaves = leaves_of(sample.experiment.ds_config.json(), "");
    for (const auto& [pointer, value] : leaves) {
      const std::string setting = pointer == kStage ? kStage : leaves.at(kStage) + ": " + pointer;
      residuals[setting][value].push_back(100 * (time_of(sample) / prediction->step_time - 1));
    }
  }
  std::cout
      << "\n| stage: setting | value | measurements | median of measured / predicted - 1 (%) |\n"
      << "| :-- | :-- | --: | --: |\n";
  for (const auto& [setting, values] : residuals) {
    if (values.size() < 2) continue;
    for (const auto& [value, own] : values) {
      std::cout << "| " << setting << " | " << value << " | " << own.size() << " | "
                << std::setprecision(1) << summarize(own).median << " |\n";
    }
  }
}

double milliseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void print_costs(const std::vector<Sample>& samples, const RunRates& rates) {
  StepTimePredictor predictor(rates);
  const auto predict_all = [&] {
    for (const Sample& sample : samples) predictor.predict(sample.experiment);
  };
  const double dry = milliseconds_of(predict_all);
  for (const Sample& sample : samples) predictor.learn(sample.experiment, sample.measured);
  const double fit = milliseconds_of([&] { predictor.predict(samples.front().experiment); });
  const double again = milliseconds_of(predict_all);
  const auto count = static_cast<double>(samples.size());
  std::cout << "\nA dry step: " << std::setprecision(2) << dry / count << " ms; a fit to "
            << samples.size() << " measurements: " << fit
            << " ms; a prediction of what is known: " << 1000 * again / count << " us.\n";
}

/// Where nobody measured the machine, or believes in another.
void print_estimated(const std::vector<Sample>& samples, const std::string& backend) {
  RunSettings settings = samples.front().experiment.settings;
  settings.backend = backend;
  const StepTimePredictor predictor = taught(samples, estimated_rates(settings));
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const Sample& sample : samples) {
    const auto prediction = predictor.without_own(sample.experiment);
    if (!prediction) continue;
    predicted.push_back(prediction->step_time);
    measured.push_back(time_of(sample));
  }
  print_row("physics with rates estimated for " + backend + ", corrected", predicted, measured);
}

void run(const std::vector<Sample>& samples, const RunRates& rates) {
  const StepTimePredictor predictor = taught(samples, rates);
  std::vector<double> measured;
  std::vector<double> predicted;
  std::vector<double> noise;
  int inside = 0;
  for (const Sample& sample : samples) {
    const auto prediction = predictor.without_own(sample.experiment);
    if (!prediction) continue;
    measured.push_back(time_of(sample));
    noise.push_back(sample.measured.step_time.noise_percent);
    predicted.push_back(prediction->step_time);
    const PredictionInterval interval = interval_of(*prediction);
    inside += interval.low <= measured.back() && measured.back() <= interval.high ? 1 : 0;
  }
  const Summary times = summarize(measured);
  std::cout << measured.size() << " measurements, " << std::setprecision(4) << times.min << " to "
            << times.max << " s; median noise of a step " << summarize(noise).median << " %\n\n"
            << "| each from the others | median error (%) | largest (%) | Spearman |\n"
            << "| :-- | --: | --: | --: |\n";
  print_row("physics, corrected", predicted, measured);
  for (const char* backend : {"cpu", "sim", "cuda"}) print_estimated(samples, backend);
  print_raw(samples, measured);
  const PredictorQuality quality = predictor.quality();
  std::cout << "\nInside the interval of 90 %: " << std::setprecision(1) << 100 * quality.inside_90
            << " % as fitted, " << 100.0 * inside / static_cast<double>(measured.size())
            << " % after widening it " << std::setprecision(2) << quality.widening << " times.\n";
  print_as_they_come(samples, rates);
  print_residuals(samples, predictor);
  print_coefficients(samples, rates);
  print_costs(samples, rates);
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_predictor JOURNAL...\n";
    return 2;
  }
  const dstune::Data data = dstune::read_data(argc - 1, argv + 1);
  dstune::run(data.samples, data.rates);
}
