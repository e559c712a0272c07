// The time of whole optimizer steps on one rank, by DeepSpeed's stage 0 with its fused Adam.
//
// Exit codes: 0 measured, 2 it cannot run here.

#include <algorithm>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/variables_map.hpp>

#include "bench/gpu/choose_device.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/training_step.hpp"

namespace dstune::bench {
namespace {

struct Options {
  std::string backend;
  std::vector<std::string> models;
  std::vector<int> micro_batches;
  int sequence = 0;
  bool is_fp32 = false;
  int steps = 0;
  int threads = 0;
  bool writes_json = false;
};

struct Case {
  ModelSpec model;
  int micro_batch = 0;
};

/// Medians over the steps; absent: out of memory.
struct Times {
  Summary total;
  Seconds forward = 0;
  Seconds backward = 0;
  Seconds optimizer = 0;
  Bytes peak = 0;
  double first_loss = 0;
};

ModelSpec model_named(const std::string& name) {
  for (const Family& family : families()) {
    for (const ModelSpec& spec : family.presets()) {
      if (spec.name == name) return spec;
    }
  }
  throw Error(concat("no model \"", name, "\""));
}

StepConfig config_of(const Options& options, int micro_batch) {
  json::object ds_config = {{"train_batch_size", micro_batch},
                            {"train_micro_batch_size_per_gpu", micro_batch},
                            {"gradient_accumulation_steps", 1},
                            {"gradient_clipping", 1.0},
                            {"zero_optimization", {{"stage", 0}}},
                            {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}}};
  if (!options.is_fp32) ds_config["bf16"] = {{"enabled", true}};
  return make_step_config(ds_config);
}

// The first steps are unlike the others: the libraries choose, the moments are made.
constexpr int kWarmUp = 3;

std::vector<StepReport> run_steps(TrainingStep& step, int count, double& first_loss) {
  first_loss = step.run().loss;
  for (int i = 1; i < kWarmUp; ++i) step.run();
  std::vector<StepReport> reports;
  reports.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) reports.push_back(step.run());
  return reports;
}

Summary summary_of(const std::vector<StepReport>& reports, Seconds StepReport::*member) {
  std::vector<double> times;
  times.reserve(reports.size());
  for (const StepReport& report : reports) times.push_back(report.*member);
  return summarize(times);
}

std::optional<Times> measure(const Options& options, const Case& one, Device& device) {
  RunSettings settings;
  settings.model = one.model;
  settings.sequence_length = options.sequence;
  const StepConfig config = config_of(options, one.micro_batch);
  DryCollectives alone(device, 0, 1);
  device.memory().reset_peak();
  try {
    TrainingStep step(settings, config, device, alone);
    Times times;
    const auto reports = run_steps(step, options.steps, times.first_loss);
    times.total = summary_of(reports, &StepReport::total);
    times.forward = summary_of(reports, &StepReport::forward).median;
    times.backward = summary_of(reports, &StepReport::backward).median;
    times.optimizer = summary_of(reports, &StepReport::optimizer).median;
    times.peak = device.memory().peak().allocated;
    return times;
  } catch (const OutOfMemoryError&) {
    return std::nullopt;
  }
}

void print_json(const Options& options, const Case& one, const std::optional<Times>& times) {
  json::object line = {{"model", one.model.name},      {"micro_batch", one.micro_batch},
                       {"sequence", options.sequence}, {"dtype", options.is_fp32 ? "fp32" : "bf16"},
                       {"attention", "sdpa"},          {"step_s", nullptr}};
  if (times) {
    line["step_s"] = times->total.median;
    line["noise_percent"] = times->total.noise_percent;
    line["forward_s"] = times->forward;
    line["backward_s"] = times->backward;
    line["optimizer_s"] = times->optimizer;
    line["peak_bytes"] = times->peak;
    line["first_loss"] = times->first_loss;
  }
  std::cout << to_json_text(line, 0) << std::endl;
}

void print_row(const Options& options, const Case& one, const std::optional<Times>& times,
               const std::optional<DevicePeaks>& peaks) {
  std::cout << concat("| ", one.model.name, " | ", one.micro_batch, " | ");
  if (!times) {
    std::cout << "out of memory | | | | | | |" << std::endl;
    return;
  }
  const auto ms = [](Seconds time) { return fixed(time * 1e3, 2); };
  const double speed = training_flops(one.model, std::int64_t{one.micro_batch} * options.sequence,
                                      options.sequence) /
                       times->total.median;
  const std::string share = peaks ? fixed(100 * speed / peaks->gemm_flops_per_s, 0) : "-";
  std::cout << concat(ms(times->total.median), " | ", fixed(times->total.noise_percent, 1), " | ",
                      ms(times->forward), " | ", ms(times->backward), " | ", ms(times->optimizer),
                      " | ", fixed(speed * 1e-12, 2), " | ", share, " |")
            << std::endl;
}

void print_header(const Options& options, const Device& device) {
  std::cout << concat("Device: ", device.name(), "; ", options.is_fp32 ? "fp32" : "bf16",
                      ", stage 0, fused Adam, sequences of ", options.sequence,
                      ", sdpa (there is no eager attention), no host overhead\n\n",
                      "| model | micro-batch | step (ms) | noise (%) | forward | backward | "
                      "optimizer | TFLOP/s | % of the GEMM peak |\n",
                      "|:--|--:|--:|--:|--:|--:|--:|--:|--:|\n");
}

void run(const Options& options) {
  const ChosenDevice chosen(options.backend, options.threads);
  Device& device = chosen.device();
  const auto peaks = device.peaks(options.is_fp32 ? DType::fp32 : DType::bf16);
  if (!options.writes_json) print_header(options, device);
  for (const std::string& name : options.models) {
    for (const int micro_batch : options.micro_batches) {
      const Case one{model_named(name), micro_batch};
      const auto times = measure(options, one, device);
      device.trim();
      if (options.writes_json) {
        print_json(options, one, times);
      } else {
        print_row(options, one, times, peaks);
      }
    }
  }
}

namespace po = boost::program_options;

po::options_description described(Options& options) {
  po::options_description all("usage: bench_gpu_step [OPTION...]");
  auto add = all.add_options();
  add("help", "this text");
  add("backend", po::value(&options.backend)->default_value("cuda"), "or cpu");
  add("model",
      po::value(&options.models)
          ->multitoken()
          ->default_value({"gpt2", "gpt2-medium"}, "gpt2 gpt2-medium"),
      "names of Hugging Face's");
  add("micro-batch",
      po::value(&options.micro_batches)->multitoken()->default_value({1, 4, 16}, "1 4 16"),
      "sequences");
  add("sequence", po::value(&options.sequence)->default_value(1024), "tokens of one");
  add("fp32", po::bool_switch(&options.is_fp32), "instead of bf16 with fp32 master weights");
  add("steps", po::value(&options.steps)->default_value(15), "measured, after 3 others");
  add("threads", po::value(&options.threads)->default_value(1), "of the BLAS, on the CPU");
  add("json", po::bool_switch(&options.writes_json), "a line of JSON for each case");
  return all;
}

}  // namespace
}  // namespace dstune::bench

int main(int argc, char** argv) {
  try {
    dstune::bench::Options options;
    const auto all = dstune::bench::described(options);
    boost::program_options::variables_map given;
    boost::program_options::store(boost::program_options::parse_command_line(argc, argv, all),
                                  given);
    boost::program_options::notify(given);
    if (given.contains("help")) {
      std::cout << all;
      return 0;
    }
    dstune::bench::run(options);
    return 0;
  } catch (const std::exception& fault) {
    std::cerr << "bench_gpu_step: " << fault.what() << std::endl;
    return 2;
  }
}
