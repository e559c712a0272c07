#include "core/search/run/tuning_run.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/exit_code.hpp"
#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/report/files/status_file.hpp"
#include "core/search/predict/run_rates.hpp"
#include "tests/core/search/feasibility/machine_support.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::tuning_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::MemoryDirectory;
using testing_support::ScriptedPool;
using testing_support::SimulatedMachine;
using testing_support::workers_on;

constexpr std::string_view kInput = R"({
  "train_micro_batch_size_per_gpu": [1, 2],
  "zero_optimization": {"stage": [1, 2], "reduce_bucket_size": 1000},
  "dstune": {
    "tuner": "fast", "backend": "cpu", "sequence_length": 8, "memory_limit": "1GiB",
    "model": {"model_type": "gpt2", "vocab_size": 32, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
  }
})";

/// A run with a group of two workers, whose times are formulas.
class TuningRunTest : public testing::Test {
 protected:
  TuningRunTest() {
    machine_.samples_per_s = testing_support::saturating;
    write_file_atomically(options_.config_path, kInput, Durability::process_crash);
  }

  int run() {
    const RunInput input = read_run_input(options_, 3);
    if (!input.config) return input.exit_code;
    std::vector<WorkerInfo> workers;
    for (int rank = 1; rank <= 2; ++rank) {
      workers.push_back(test::worker(rank, "node", 2, {test::cpu(8 * test::kGiB, 8 * test::kGiB)}));
    }
    return run_tuning(options_, *input.config, pool_, workers, surroundings_);
  }

  std::string path(const std::string& name) const { return *options_.results_dir + '/' + name; }
  RunStatus status() const {
    return run_status_from_json(parse_json(read_text_file(path("status.json"))).as_object());
  }

  MemoryDirectory directory_;
  CommandLine options_ = [this] {
    CommandLine options;
    options.config_path = directory_ / "config.json";
    options.results_dir = directory_ / "results";
    return options;
  }();
  SimulatedMachine machine_;
  ScriptedPool pool_{workers_on("node", 1, 2), [this](const Experiment& experiment) {
                       if (!rates_ || !experiment.measures_machine) return machine_.run(experiment);
                       Measured measured;
                       measured.machine_rates = rates_;
                       return Outcome(measured);
                     }};
  std::optional<MachineRates> rates_;  ///< that groups measure; none: they measure none
  std::string printed_;
  Surroundings surroundings_{
      .mpi = "some MPI",
      .launcher_folder = "",
      .make_to_ask = [](const std::string&) { return std::unique_ptr<Backend>(); },
      .interrupted = [] { return false; },
      .why_cannot_print = [](Bytes) { return std::string(); },
      .print = [this](std::string_view text) { printed_ += text; }};
};

TEST_F(TuningRunTest, LeavesTheOptimumAndItsTable) {
  EXPECT_EQ(run(), exit_found);

  EXPECT_THAT(printed_, HasSubstr("z1_gas1_tmbspg2"));
  EXPECT_EQ(status().state, RunState::found);
  EXPECT_EQ(status().best, "z1_gas1_tmbspg2");
  EXPECT_EQ(status().experiments, 4);
  EXPECT_TRUE(std::filesystem::exists(path("ds_config_optimal.json")));
  EXPECT_THAT(read_text_file(path("journal.jsonl")), HasSubstr("some MPI"));
}

TEST_F(TuningRunTest, LosesNoResultsWhereStandardOutputFails) {
  surroundings_.print = [](std::string_view) { throw Error("no reader"); };

  EXPECT_EQ(run(), exit_internal_error);

  EXPECT_EQ(status().best, "z1_gas1_tmbspg2");
  EXPECT_EQ(status().exit_code, exit_internal_error);
  EXPECT_EQ(status().message, "no reader; the results are in " + *options_.results_dir);
  EXPECT_TRUE(std::filesystem::exists(path("ds_config_optimal.json")));
}

TEST_F(TuningRunTest, PrintsNothingThatTheLauncherCannotHandOn) {
  surroundings_.why_cannot_print = [](Bytes size) {
    return size > 0 ? "No space left on device" : "";
  };

  EXPECT_EQ(run(), exit_internal_error);

  EXPECT_EQ(printed_, "");
  EXPECT_THAT(status().message,
              StartsWith("cannot write standard output: No space left on device; the results"));
}

TEST_F(TuningRunTest, SaysInItsStatusWhatEndedIt) {
  machine_.fails = [](const Point&) -> bool { throw std::runtime_error("the pool broke"); };

  EXPECT_EQ(run(), exit_internal_error);

  EXPECT_EQ(status().state, RunState::failed);
  EXPECT_EQ(status().message, "the pool broke");
  EXPECT_EQ(printed_, "");
}

TEST_F(TuningRunTest, IsProvisionalWhenInterrupted) {
  surroundings_.interrupted = [this] { return !pool_.starts().empty(); };

  EXPECT_EQ(run(), exit_interrupted);

  EXPECT_EQ(status().state, RunState::interrupted);
  EXPECT_TRUE(status().provisional);
  EXPECT_FALSE(std::filesystem::exists(path("ds_config_optimal.json")));
}

/// What a run writes to its log.
std::string log_of(const std::function<int()>& run) {
  testing::internal::CaptureStderr();
  const int code = run();
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, exit_found) << log;
  return log;
}

TEST_F(TuningRunTest, SaysWhatItBeginsBeforeTheFirstExperimentEnds) {
  const std::string log = log_of([this] { return run(); });

  EXPECT_THAT(log, StartsWith("dstune-mpi: tuning "));
  EXPECT_LT(log.find("\nfirst: z1_gas2_tmbspg1"), log.find("\n[1"));
  for (const auto& line : split(log, '\n')) {
    if (line.starts_with("[") || line.starts_with("first: ")) {
      EXPECT_LE(line.size(), 100U) << line;
    }
  }
}

TEST_F(TuningRunTest, SaysNothingOfExperimentsIfAsked) {
  options_.progress = ProgressStyle::none;

  const std::string log = log_of([this] { return run(); });

  EXPECT_THAT(log, Not(HasSubstr("z1_gas1_tmbspg1")));
  EXPECT_THAT(log, HasSubstr("best: z1_gas1_tmbspg2, written to "));
}

class LearntTest : public TuningRunTest {
 protected:
  LearntTest() {
    surroundings_.cache_folder = directory_ / "cache";
    RunSettings settings;
    settings.backend = "cpu";
    rates_ = estimated_rates(settings);
    rates_->launch *= 2;
    write("guided");
  }

  void write(const std::string& tuner, const std::string& more = "") const {
    std::string input(kInput);
    input.replace(input.find("[1, 2]"), 6, "[1, 2, 3, 4]");
    input.replace(input.find("\"fast\""), 6, concat("\"", tuner, R"(", "preflight": false)", more));
    write_file_atomically(options_.config_path, input, Durability::process_crash);
  }
  std::string log() {
    return log_of([this] { return run(); });
  }
  std::vector<std::string> begun() const {
    std::vector<std::string> lines;
    for (const auto& line : split(read_text_file(path("journal.jsonl")), '\n')) {
      if (line.find("\"type\":\"run\"") != std::string::npos) lines.push_back(line);
    }
    return lines;
  }
  std::filesystem::path kept() const { return surroundings_.cache_folder / "machines"; }

  static constexpr const char* kBegins = "starts from what earlier searches learnt";
};

TEST_F(LearntTest, OneSearchBeginsWithWhatTheOneBeforeLearnt) {
  EXPECT_THAT(log(), Not(HasSubstr(kBegins)));
  options_.overwrite = true;

  EXPECT_THAT(log(), HasSubstr(kBegins));
  EXPECT_THAT(begun(), ElementsAre(HasSubstr("\"learnt\":{\"factors\"")));

  write("guided", R"(, "learnt": false)");
  EXPECT_THAT(log(), Not(HasSubstr(kBegins)));
  EXPECT_THAT(begun(), ElementsAre(Not(HasSubstr("\"learnt\""))));
}

TEST_F(LearntTest, AContinuedSearchGoesOnWithWhatItBeganWith) {
  log();
  options_.overwrite = false;
  options_.resume = true;

  EXPECT_THAT(log(), Not(HasSubstr(kBegins))) << "it began with nothing";
}

TEST_F(LearntTest, ASearchThatMeasuredNoRatesTeachesNothing) {
  write("fast");
  log();

  EXPECT_FALSE(std::filesystem::exists(kept()));
}

TEST_F(LearntTest, ASearchThatWasStoppedTeachesNothing) {
  surroundings_.interrupted = [this] { return pool_.starts().size() > 7; };
  EXPECT_EQ(run(), exit_interrupted);

  EXPECT_FALSE(std::filesystem::exists(kept()));
}

TEST_F(TuningRunTest, MeasuresNothingAgainThatIsInTheJournal) {
  EXPECT_EQ(run(), exit_found);
  const std::size_t before = pool_.starts().size();
  options_.resume = true;

  EXPECT_EQ(run(), exit_found);

  EXPECT_EQ(pool_.starts().size(), before) << "everything is in the journal";
}

TEST_F(TuningRunTest, TouchesNothingWhereThereIsNoGroup) {
  options_.ranks_per_experiment = 4;

  EXPECT_EQ(run(), exit_wrong_input);

  EXPECT_FALSE(std::filesystem::exists(*options_.results_dir));
}

TEST_F(TuningRunTest, NeedsAWorker) {
  const RunInput input = read_run_input(options_, 1);

  EXPECT_FALSE(input.config);
  EXPECT_EQ(input.exit_code, exit_wrong_input);
}

TEST_F(TuningRunTest, CountsTheRanksAndMachinesThatTrain) {
  options_.emit = {EmittedForm::accelerate};

  EXPECT_EQ(run(), exit_found);

  EXPECT_THAT(read_text_file(path("accelerate_optimal.yaml")),
              HasSubstr("num_machines: 1\nnum_processes: 2\n"));
}

}  // namespace
}  // namespace dstune::tuning_run_test
