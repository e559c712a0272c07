#include "core/search/space/offload_space.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/experiment/step_config.hpp"

namespace dstune::offload_space_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What a stage needs of the device by what is offloaded; of the host a rank needs 40, or 30 if
/// nothing is pinned, and 20 more for parameters. A sample takes 1.
class OffloadSpaceTest : public testing::Test {
 protected:
  struct Needs {
    Bytes without = 0;
    Bytes optimizer = 0;
    Bytes all = 0;
  };

  void SetUp() override {
    config_.stages = {1, 2, 3};
    config_.settings.memory_limit = 100;
    config_.settings.host_memory_limit = 1000;
    config_.autotuning.max_train_micro_batch_size_per_gpu = 8;
    config_.deepspeed = json::object{{"optimizer", {{"type", "AdamW"}}}};
    machine_.group_size = 2;
    machine_.memory_limit = 100;
  }

  Outcome outcome(const Experiment& experiment) const {
    const json::object& zero = experiment.ds_config.json().at("zero_optimization").as_object();
    const auto is_off_device = [&](const char* section) {
      const auto* const found = zero.if_contains(section);
      return found != nullptr && found->at("device") != "none";
    };
    const auto stage = zero.at("stage").to_number<int>();
    const Needs& needs = needs_.at(stage);
    const bool optimizer = is_off_device("offload_optimizer");
    const bool parameters = is_off_device("offload_param");
    Measured measured;
    measured.peak_memory.allocated = (parameters  ? needs.all
                                      : optimizer ? needs.optimizer
                                                  : needs.without) +
                                     static_cast<Bytes>(make_step_config(experiment).micro_batch);
    if (optimizer) {
      const bool pins = zero.at("offload_optimizer").at("pin_memory").as_bool();
      measured.peak_host_memory.held = (pins ? 40 : 30) + (parameters ? 20 : 0);
      if (make_step_config(experiment).swaps_optimizer()) {
        swap(make_step_config(experiment), measured.peak_host_memory);
      }
    }
    if (measured.peak_memory.allocated > experiment.settings.memory_limit) return OutOfMemory{};
    return measured;
  }

  /// The buffers take an element in 10 million of a sub-group; the drive has 60.
  static void swap(const StepConfig& step, PeakHostMemory& peak) {
    peak.held = 2 + static_cast<Bytes>(step.sub_group_size / 10'000'000);
    peak.drive = 60;
  }

  MemoryPredictor predictor() const {
    return [this](const Experiment& experiment, int) { return outcome(experiment); };
  }
  TuningConfig searched() const {
    return with_offload(config_, machine_, predictor(), [this](const Experiment& experiment, int) {
      return DryRun{outcome(experiment), 0};
    });
  }
  /// The devices of a section in the spaces of a stage.
  static std::vector<std::string> devices(const TuningConfig& config, int stage,
                                          const std::string& section = "offload_optimizer") {
    std::vector<std::string> found;
    for (const AxisGroup& group : config.space.axes_of(stage)) {
      for (const Axis& axis : group.tied) {
        if (axis.pointer != "/zero_optimization/" + section + "/device") continue;
        for (const json::value& value : axis.values) found.emplace_back(value.as_string());
      }
    }
    return found;
  }

  /// The values of a place of zero_optimization that are added to stage 3.
  static std::vector<json::value> values(const TuningConfig& config, const std::string& place) {
    for (const AxisGroup& group : config.space.axes_of(3)) {
      for (const Axis& axis : group.tied) {
        if (axis.pointer == "/zero_optimization/" + place) return axis.values;
      }
    }
    return {};
  }

  TuningConfig config_;
  Machine machine_;
  std::map<int, Needs> needs_ = {
      {0, {200, 200, 200}}, {1, {150, 120, 120}}, {2, {120, 90, 90}}, {3, {80, 50, 20}}};
};

TEST_F(OffloadSpaceTest, IsForTheStagesThatDoNotFitWithoutAndDoWith) {
  const TuningConfig config = searched();

  EXPECT_THAT(devices(config, 1), IsEmpty()) << "does not fit with it either";
  EXPECT_THAT(devices(config, 2), ElementsAre("cpu"));
  EXPECT_THAT(devices(config, 3), IsEmpty()) << "fits without";
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("nothing of stage 2 fits on the device alone")));
}

TEST_F(OffloadSpaceTest, BeginsWithTheLeastThatFits) {
  needs_[3] = {150, 90, 20};
  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu", "cpu"));
  EXPECT_THAT(devices(searched(), 3, "offload_param"), ElementsAre("none", "cpu"));

  needs_[3] = {150, 120, 20};
  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu"));
  EXPECT_THAT(devices(searched(), 3, "offload_param"), ElementsAre("cpu"));
  EXPECT_THAT(searched().notes,
              testing::ElementsAre(
                  HasSubstr("nothing of stages 2, 3 fits on the device alone, so the optimizer, in "
                            "stage 3 with the parameters, goes to the host's")));
}

TEST_F(OffloadSpaceTest, IsForTheMicroBatchesThatTheUserWants) {
  needs_[3] = {96, 96, 20};
  config_.micro_batches = {6, 8};

  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu")) << "4 would fit without";
  EXPECT_THAT(devices(searched(), 3, "offload_param"), ElementsAre("cpu"));

  config_.micro_batches = {4};
  EXPECT_THAT(devices(searched(), 3), IsEmpty());
}

TEST_F(OffloadSpaceTest, PinsNothingWhereOnlyThatFitsIntoTheHost) {
  config_.settings.host_memory_limit = 35;

  const TuningConfig config = searched();

  const AxisGroup group = config.space.axes_of(2).back();
  EXPECT_EQ(group.tied[1].pointer, "/zero_optimization/offload_optimizer/pin_memory");
  EXPECT_THAT(group.tied[1].values, ElementsAre(false));

  config_.settings.host_memory_limit = 29;
  EXPECT_THAT(devices(searched(), 2), IsEmpty());
}

TEST_F(OffloadSpaceTest, GoesToADriveWhereNothingElseFitsAndAFolderIsGiven) {
  needs_[3] = {150, 90, 20};
  config_.settings.host_memory_limit = 15;
  EXPECT_THAT(devices(searched(), 3), IsEmpty());

  config_.offload.nvme_path = "/mnt/nvme";
  const TuningConfig config = searched();

  EXPECT_THAT(devices(config, 3), ElementsAre("nvme"));
  EXPECT_THAT(devices(config, 3, "offload_param"), ElementsAre("cpu"));
  EXPECT_THAT(values(config, "offload_optimizer/nvme_path"), ElementsAre("/mnt/nvme"));
  EXPECT_THAT(values(config, "sub_group_size"), ElementsAre(kUsualSubGroup));
  EXPECT_THAT(config.notes,
              ElementsAre(HasSubstr("nothing of stage 3 fits on the device and in the host's "
                                    "memory, so the optimizer goes to the drive"),
                          HasSubstr("dstune-mpi --nvme-sweep /mnt/nvme finds")));

  config_.settings.drive_limit = 59;
  EXPECT_THAT(devices(searched(), 3), IsEmpty());
}

TEST_F(OffloadSpaceTest, LeavesADriveAloneWhereTheHostIsEnough) {
  needs_[3] = {150, 90, 20};
  config_.offload.nvme_path = "/mnt/nvme";

  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu", "cpu"));
  EXPECT_THAT(values(searched(), "sub_group_size"), IsEmpty());
  EXPECT_THAT(searched().notes, ElementsAre(HasSubstr("goes to the host's memory there")));
}

TEST_F(OffloadSpaceTest, TakesSmallerSubGroupsForADriveWhereTheUsualBuffersDoNotFit) {
  needs_[3] = {150, 90, 20};
  config_.offload.nvme_path = "/mnt/nvme";
  config_.settings.host_memory_limit = 11;
  EXPECT_THAT(values(searched(), "sub_group_size"), ElementsAre(kSmallSubGroup));
  EXPECT_THAT(values(searched(), "offload_optimizer/pin_memory"), ElementsAre(true));

  config_.deepspeed.set("zero_optimization", {{"sub_group_size", 90'000'000}});
  EXPECT_THAT(values(searched(), "sub_group_size"), IsEmpty()) << "the user's is kept";
  EXPECT_THAT(devices(searched(), 3), ElementsAre("nvme"));
  config_.deepspeed.set("zero_optimization", {{"sub_group_size", 91'000'000'000}});
  EXPECT_THAT(devices(searched(), 3), IsEmpty());
}

TEST_F(OffloadSpaceTest, HasADriveAmongTheUsersLevels) {
  config_.offload = {OffloadWhen::levels,
                     true,
                     {OffloadLevel::optimizer, OffloadLevel::optimizer_on_nvme},
                     "/mnt/nvme"};
  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu", "nvme"));
  EXPECT_THAT(values(searched(), "sub_group_size"), ElementsAre(1'000'000'000, kUsualSubGroup));
  EXPECT_THAT(devices(searched(), 2), ElementsAre("cpu"));
  EXPECT_THAT(searched().notes, ElementsAre(HasSubstr("--nvme-sweep")));

  config_.deepspeed.set("aio", {{"block_size", 4096}});
  EXPECT_THAT(searched().notes, IsEmpty());
}

TEST_F(OffloadSpaceTest, ToldOtherwiseDoesOtherwise) {
  config_.offload = {OffloadWhen::never, true, {}};
  EXPECT_TRUE(searched().space.empty());

  config_.offload.when = OffloadWhen::always;
  EXPECT_THAT(devices(searched(), 1), ElementsAre("cpu"));
  EXPECT_THAT(devices(searched(), 3), ElementsAre("cpu", "cpu"));
  EXPECT_THAT(searched().notes, IsEmpty()) << "the user knows";

  config_.offload = {OffloadWhen::levels, true, {OffloadLevel::none, OffloadLevel::optimizer}};
  EXPECT_THAT(devices(searched(), 2), ElementsAre("none", "cpu"));
  EXPECT_THAT(devices(searched(), 3, "offload_param"), ElementsAre("none", "none"));
}

TEST_F(OffloadSpaceTest, WhereDevicesLiveOnTheHostItIsDoneForTheUserWhoAsks) {
  machine_.is_on_host = true;
  EXPECT_TRUE(searched().space.empty());

  config_.offload.is_given = true;
  EXPECT_THAT(devices(searched(), 2), ElementsAre("cpu"));
}

TEST_F(OffloadSpaceTest, TakesATunerThatSearchesSpacesAndAMemoryLimit) {
  config_.tuner = "fast";
  EXPECT_TRUE(searched().space.empty());
  config_.tuner = "gridsearch";
  EXPECT_FALSE(searched().space.empty());

  machine_.memory_limit = 0;
  EXPECT_TRUE(searched().space.empty());
}

TEST_F(OffloadSpaceTest, SaysWhoMakesTheOptimizerIfTheFileDoesNot) {
  config_.deepspeed = json::object();

  EXPECT_THAT(searched().notes, ElementsAre(HasSubstr("DeepSpeedCPUAdam")));
}

TEST_F(OffloadSpaceTest, AdvisesTheLeastWhereOnlyTheHostIsShort) {
  needs_[3] = {150, 90, 20};
  config_.settings.host_memory_limit = 29;

  EXPECT_THAT(
      offload_advice(config_, machine_, 3, predictor()),
      HasSubstr("with the optimizer in the host's memory (offload_optimizer cpu), which is "
                "not pinned, a rank needs 91 B of the device and 30 B (over the limit of 29 B)"));
  needs_[3] = {150, 120, 20};
  EXPECT_THAT(offload_advice(config_, machine_, 3, predictor()),
              HasSubstr("a rank needs 21 B of the device and 50 B (over the limit of 29 B)"));
}

TEST_F(OffloadSpaceTest, AdvisesADriveWhereTheHostIsNotEnough) {
  const auto advice = [&](int stage) {
    return offload_advice(config_, machine_, stage, predictor());
  };
  needs_[3] = {150, 90, 20};
  config_.settings.host_memory_limit = 15;
  EXPECT_THAT(
      advice(3),
      testing::EndsWith(
          "; the optimizer could go to a drive instead: set dstune.nvme_path to a folder on it"));
  EXPECT_THAT(advice(2), testing::Not(HasSubstr("drive"))) << "stage 3 alone has it";

  config_.offload.nvme_path = "/mnt/nvme";
  EXPECT_THAT(advice(3),
              HasSubstr("of the host at micro-batch 1; with the optimizer on NVMe and the "
                        "parameters in the host's memory (offload_optimizer nvme, offload_param "
                        "cpu), sub_group_size 100000000, it fits: 21 B of the device, 12 B of the "
                        "host and 60 B of the drive per rank at micro-batch 1, up to"));
  config_.settings.drive_limit = 50;
  EXPECT_THAT(advice(3),
              HasSubstr("3 B of the host and 60 B (over the limit of 50 B) of the drive at"));

  needs_[3] = {150, 120, 120};
  config_.settings.host_memory_limit = 1000;
  config_.offload.nvme_path.clear();
  EXPECT_THAT(advice(3), testing::Not(HasSubstr("drive"))) << "it spares nothing of the device";
}

TEST_F(OffloadSpaceTest, AdvisesWhatFitsOrWhatIsStillTooMuch) {
  const auto advice = [&](int stage) {
    return offload_advice(config_, machine_, stage, predictor());
  };

  EXPECT_THAT(advice(2), HasSubstr("the optimizer in the host's memory (offload_optimizer cpu) it "
                                   "fits: 91 B of the device and 40 B of the host per rank at "
                                   "micro-batch 1, up to micro-batch 8"));
  EXPECT_THAT(
      advice(1),
      HasSubstr("a rank needs 121 B (over the limit of 100 B) of the device and 40 B of the host"));
  EXPECT_EQ(advice(0), "") << "there is nothing to offload";

  machine_.workers = 4;
  config_.settings.host_memory_limit = 0;  // nothing is offloaded
  EXPECT_THAT(advice(2), HasSubstr("it fits: 91 B of the device and 40 B of the host"));
  config_.host_memory_limit = 100;
  EXPECT_THAT(
      advice(2),
      HasSubstr("a rank needs 91 B of the device and 30 B (over the limit of 25 B) of the host"));

  config_.settings.host_memory_limit = 35;
  EXPECT_THAT(advice(2), HasSubstr(", which is not pinned, it fits: 91 B of the device and 30 B"));
  config_.settings.host_memory_limit = 29;
  EXPECT_THAT(
      advice(2),
      HasSubstr("a rank needs 91 B of the device and 30 B (over the limit of 29 B) of the host"));
}

}  // namespace
}  // namespace dstune::offload_space_test
