#include "core/search/tuners/report/check.hpp"

#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::check_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;
using testing_support::TemporaryDirectory;

/// The formulas' memory, twice as much with overlap_comm.
class SearchOutlineTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.stages = {1, 2};
    config_.tuner = "guided";
    config_.micro_batches = {1, 2, 4};
    config_.deepspeed.set("zero_optimization", {{"overlap_comm", true}});
  }

  void add_list() {
    const Axis overlap{"/zero_optimization/overlap_comm", {true, false}};
    config_.space.all_stages = {{{overlap}}};
  }

  std::vector<StagePlan> plans() {
    return plan_stages(config_, 2, [this](const Experiment& experiment, int rank) {
      return run(experiment, rank).outcome;
    });
  }

  SearchOutline outline() { return outline_of(plans()); }

  SearchOutline outline_of(const std::vector<StagePlan>& stages) {
    return outline_search(config_, 2, stages, [this](const Experiment& experiment, int rank) {
      return run(experiment, rank);
    });
  }

  DryRun run(const Experiment& experiment, int rank) {
    ++dry_runs_;
    Outcome outcome = machine_.predictor()(experiment, rank);
    const bool overlaps =
        experiment.ds_config.json().at("zero_optimization").at("overlap_comm") == true;
    if (overlaps) std::get<Measured>(outcome).peak_memory.allocated *= 2;
    return {std::move(outcome), 0};
  }

  TuningConfig config_ = make_tuning_config(1000);
  SimulatedMachine machine_;
  int dry_runs_ = 0;
};

TEST_F(SearchOutlineTest, CountsWhatIsGenerated) {
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 6, 6}));

  add_list();
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 12}));
}

TEST_F(SearchOutlineTest, HasNoStageWithoutAConfiguration) {
  const auto stages = plans();

  config_.micro_batches = {2048};

  EXPECT_EQ(outline_of(stages), SearchOutline{}) << "the limit is 1024";
}

TEST_F(SearchOutlineTest, IsBoundByTheTrialsOfEachStageInFullMode) {
  add_list();
  config_.autotuning.tuner_num_trials = 5;
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 5}));

  config_.autotuning.fast = false;
  config_.tuner = "random";
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 10}));
}

TEST_F(SearchOutlineTest, HasTheStagesThatFitWithSomeValueOfAList) {
  config_.settings.memory_limit = 250;  // overlapping, stage 1 needs 620 and stage 2 420
  EXPECT_EQ(outline(), SearchOutline{});

  add_list();
  EXPECT_EQ(outline(), (SearchOutline{{2}, 6, 6}));
}

TEST_F(SearchOutlineTest, TakesAFewDryRunsForAnySpace) {
  config_.micro_batches.clear();
  add_list();
  Axis many{"/zero_optimization/reduce_bucket_size", {}};
  for (int i = 1; i <= 1000; ++i) many.values.emplace_back(i * 1000);
  config_.space.all_stages.push_back({{std::move(many)}});

  EXPECT_GT(outline().configurations, 1000U);
  EXPECT_LT(dry_runs_, 200);
}

TEST_F(SearchOutlineTest, OfFastModeIsWhatItWouldExplore) {
  config_.tuner = "fast";
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 6, 6}));
}

/// --check of a small file on a machine of virtual time.
class CheckRunTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.config_path = directory_ / "config.json";
    options_.results_dir = directory_ / "results";
    options_.world_size = 2;
    write_file_atomically(options_.config_path, R"({
      "train_micro_batch_size_per_gpu": [1, 2],
      "zero_optimization": { "stage": [0, 1] },
      "dstune": {
        "model": { "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1 },
        "backend": "sim", "sequence_length": 8, "tuner": "fast", "memory_limit": "64MiB"
      }
    })");
  }

  std::optional<std::string> check() {
    constexpr Bytes kMemory = Bytes{80} << 30U;
    return check_run(options_, {{{"sim", "virtual time", kMemory, kMemory, false, ""}},
                                [](const std::string&) { return std::unique_ptr<Backend>(); }});
  }

  TemporaryDirectory directory_;
  CommandLine options_;
};

TEST_F(CheckRunTest, SaysWhatWouldRun) {
  EXPECT_THAT(check().value(),
              AllOf(HasSubstr("would run: "),
                    HasSubstr(", 2 ranks per experiment, stages 0, up to 2 experiments")));
}

TEST_F(CheckRunTest, IsNoneWhereNothingFits) {
  options_.memory_limit = 1000;

  EXPECT_FALSE(check());
}

/// Another machine may run it, so it is no fault that a stage does not fit here.
TEST_F(CheckRunTest, HoldsTheStagesAgainstTheGpuOfThisMachine) {
  options_.backend = "cuda";
  write_file_atomically(options_.config_path, R"({
    "zero_optimization": { "stage": [0] },
    "dstune": {
      "model": { "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1 },
      "sequence_length": 8, "tuner": "fast"
    }
  })");
  DeviceInfo gpu{"cuda", "Some GPU", Bytes{80} << 30U, 1000, false, ""};
  gpu.limit_is_free_memory = true;
  testing::internal::CaptureStderr();

  const auto verdict =
      check_run(options_, {{gpu},
                           [](const std::string&) { return std::unique_ptr<Backend>(); },
                           [&](const std::string&, const Placement&) { return gpu; }});

  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("per rank for one sample, more than the 1000 B that it could have on\n  this "
                "machine"));
  EXPECT_THAT(verdict.value(), AllOf(HasSubstr("would run: "),
                                     HasSubstr("; here a rank could have 1000 B: 1000 B free on "
                                               "Some GPU of this machine")));
}

TEST_F(CheckRunTest, RefusesAFolderThatCannotBeWrittenTo) {
  write_file_atomically(directory_ / "file", "");
  options_.results_dir = directory_ / "file/results";

  EXPECT_THROW(check(), ConfigError);
}

}  // namespace
}  // namespace dstune::check_test
