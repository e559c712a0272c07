#include "tests/support/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/products/blas.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::test {
namespace {

constexpr Bytes kLimit = Bytes{1} << 30U;

std::vector<std::vector<float>> read_parameters(TrainingStep& step) {
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < step.parameters().tensors.size(); ++i) {
    values.push_back(step.engine().read_parameter(i));
  }
  return values;
}

TrainingRun train(TrainingRank& own, int steps) {
  TrainingRun run;
  for (int i = 0; i < steps; ++i) {
    const StepReport report = own.step.run();
    if (report.result.overflow) throw std::runtime_error("a step overflowed");
    run.losses.push_back(all_reduce(own.device, own.collectives, report.loss, ReduceOp::sum) /
                         own.collectives.size());
    run.norms.push_back(report.grad_norm);
  }
  run.parameters = read_parameters(own.step);
  return run;
}

}  // namespace

RunSettings tiny_settings() {
  RunSettings settings;
  settings.model.name = "tiny";
  settings.model.vocab_size = 37;
  settings.model.max_positions = 7;
  settings.model.hidden_size = 12;
  settings.model.inner_size = 48;
  settings.model.num_layers = 2;
  settings.model.num_heads = 3;
  settings.model.initializer_range = 0.2;  // so small a model has tiny gradients with GPT-2's 0.02
  settings.sequence_length = 7;
  settings.memory_limit = kLimit;
  settings.allocator = test_allocator();
  settings.seed = 5;
  return settings;
}

std::vector<float> TrainingRank::parameters() {
  std::vector<float> all;
  for (const auto& values : read_parameters(step)) {
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void on_training_ranks(const StepConfig& config, int ranks,
                       const std::function<void(TrainingRank& own)>& body,
                       const RunSettings& settings, const MakeBackend& make_backend) {
  cpu::set_blas_threads(1);  // for all: the threads of a process share one BLAS
  if (!config.unsupported.empty()) throw std::invalid_argument(config.unsupported.front());
  run_on_ranks(ranks, [&](int rank, ThreadTeam& team) {
    const auto backend = make_backend(rank);
    Device& device = backend->device({.memory_limit = settings.memory_limit, .threads = 0});
    device.memory().count_as(settings.allocator);
    ThreadGroup group(team, rank);
    device.on_tick([&group] { group.poll(); });
    const auto collectives = backend->collectives(
        group, [&](Device& on) { return std::make_unique<ThreadCollectives>(on, team, rank); });
    TrainingStep step(settings, config, device, *collectives);
    TrainingRank own{rank, device, *collectives, step};
    body(own);
  });
}

std::unique_ptr<Backend> make_cpu_backend(int /*rank*/) {
  return std::make_unique<cpu::CpuBackend>();
}

TrainingRun run_training(const StepConfig& config, int ranks, int steps,
                         const RunSettings& settings, const MakeBackend& make_backend) {
  std::vector<TrainingRun> runs(static_cast<std::size_t>(ranks));
  on_training_ranks(
      config, ranks,
      [&](TrainingRank& own) { runs[static_cast<std::size_t>(own.rank)] = train(own, steps); },
      settings, make_backend);
  for (const TrainingRun& run : runs) {
    if (run.norms != runs[0].norms) throw std::runtime_error("ranks have different norms");
    if (run.parameters != runs[0].parameters) throw std::runtime_error("ranks differ");
  }
  return runs[0];
}

TrainingRun run_reference(const StepConfig& config, int steps) {
  return run_training(config, 1, steps, tiny_settings(), make_cpu_backend);
}

double largest_difference(const TrainingRun& actual, const TrainingRun& expected) {
  double largest = 0;
  for (std::size_t tensor = 0; tensor < expected.parameters.size(); ++tensor) {
    double difference = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < expected.parameters[tensor].size(); ++i) {
      const double value = expected.parameters[tensor][i];
      const double error = std::abs(actual.parameters.at(tensor).at(i) - value);
      if (std::isnan(error)) return std::numeric_limits<double>::infinity();
      difference = std::max(difference, error);
      magnitude = std::max(magnitude, std::abs(value));
    }
    largest = std::max(largest, difference / magnitude);
  }
  return largest;
}

double largest_difference(const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual.at(i) - expected[i]) / expected[i];
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace dstune::test
