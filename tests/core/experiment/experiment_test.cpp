#include "core/experiment/experiment.hpp"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/device/memory/host_memory.hpp"

namespace dstune::experiment_test {
namespace {

Experiment example() {
  Experiment experiment;
  experiment.name = "z2_gas1_tmbspg4";
  experiment.ds_config = {{"train_micro_batch_size_per_gpu", 4},
                          {"zero_optimization", {{"stage", 2}, {"reduce_bucket_size", 500000000}}},
                          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 0.1 + 0.2}}}}}};
  experiment.ranks = 3;
  experiment.settings.memory_limit = std::numeric_limits<Bytes>::max();
  experiment.settings.seed = std::numeric_limits<std::uint64_t>::max();
  experiment.settings.experiment_timeout = 1.0 / 3;
  experiment.settings.devices_per_node = 8;
  experiment.settings.allocator = AllocatorModel::caching;
  experiment.settings.host_overhead = *host_overhead_preset(kCudaOverhead);
  return experiment;
}

TEST(ExperimentJson, ReadsBackExactly) {
  const Experiment experiment = example();

  const Experiment back =
      experiment_from_json(parse_json(to_json_text(to_json(experiment), 0)).as_object());

  EXPECT_EQ(back.name, experiment.name);
  EXPECT_EQ(json::value(back.ds_config.json()), json::value(experiment.ds_config.json()));
  EXPECT_EQ(back.ranks, experiment.ranks);
  EXPECT_EQ(back.settings, experiment.settings);
  EXPECT_EQ(back.key(), experiment.key());
}

// Journals of earlier versions do not know it.
TEST(ExperimentJson, TellsOfASharedGpuOnlyWhereThereIsOne) {
  Experiment experiment = example();
  EXPECT_FALSE(to_json(experiment).at("settings").as_object().contains("share_gpu"));

  experiment.settings.share_gpu = true;

  EXPECT_TRUE(experiment_from_json(to_json(experiment)).settings.share_gpu);
}

TEST(ExperimentJson, TellsWhatGpusHaveOnlyWhereItIsThere) {
  Experiment experiment = example();
  for (const char* key : {"product_workspace", "least_warmup_s", "least_measure_s"}) {
    EXPECT_FALSE(to_json(experiment).at("settings").as_object().contains(key)) << key;
  }

  experiment.settings.product_workspace = {32, 1};
  experiment.settings.least_warmup_time = 0.5;
  experiment.settings.least_measure_time = 1.5;

  EXPECT_EQ(experiment_from_json(to_json(experiment)).settings, experiment.settings);
}

// How sure somebody is of a profile, and whence it is, changes no measurement.
TEST(ExperimentJson, IsTheSameWithAProfileThatSpendsTheSame) {
  Experiment experiment = example();
  HostOverhead& overhead = experiment.settings.host_overhead;
  overhead.collectives = {
      {.latency = 1, .bus_bytes_per_s = 1, .large_above = 1, .large_bus_bytes_per_s = 1}};
  const std::string key = experiment.key();

  overhead.origin = "mine.json";
  overhead.uncertainty[0] = 1;
  overhead.spread_factor = 1;
  overhead.collectives.front().latency_uncertainty = 1;
  overhead.collectives.front().bus_bytes_per_s_uncertainty = 1;
  overhead.collectives.front().large_bus_bytes_per_s_uncertainty = 1;
  EXPECT_EQ(experiment.key(), key);

  overhead.collectives.front().latency = 2;
  EXPECT_NE(experiment.key(), key);
}

TEST(ExperimentJson, TellsOfLengthsOnlyWhereTheyVary) {
  Experiment experiment = example();
  EXPECT_FALSE(to_json(experiment).at("settings").as_object().contains("lengths"));

  for (const LengthSettings& lengths :
       {LengthSettings{
            .law = LengthLaw::histogram, .counts = {{3, 5}, {9, 1}}, .least = 3, .most = 9},
        LengthSettings{.law = LengthLaw::lognormal, .mean = 1.0 / 3, .sigma = 0.7, .most = 9},
        LengthSettings{.law = LengthLaw::uniform, .most = 9, .is_packed = true},
        LengthSettings{.law = LengthLaw::uniform, .most = 9, .pad_to_multiple_of = 8}}) {
    experiment.settings.lengths = lengths;

    EXPECT_EQ(experiment_from_json(to_json(experiment)).settings.lengths, lengths);
    EXPECT_NE(experiment.key(), example().key());
  }
}

TEST(ExperimentJson, TellsOfAttentionWhereItIsNotSdpa) {
  Experiment experiment = example();
  EXPECT_FALSE(to_json(experiment).at("settings").as_object().contains("attention"));

  experiment.settings.attention = AttentionKind::eager;

  EXPECT_EQ(experiment_from_json(to_json(experiment)).settings.attention, AttentionKind::eager);
  EXPECT_NE(experiment.key(), example().key());
}

// Journals of earlier versions do not know them.
TEST(ExperimentJson, TellsOfTheLossOnlyWhereItIsNotThatOfTransformers) {
  Experiment experiment = example();
  const json::object plain = to_json(experiment).at("settings").as_object();
  EXPECT_FALSE(plain.contains("loss") || plain.contains("keep_logits"));

  for (const LossSettings loss :
       {LossSettings{LossKind::chunked}, LossSettings{LossKind::tiled},
        LossSettings{LossKind::fused}, LossSettings{.keep_logits = true}}) {
    experiment.settings.loss = loss;
    EXPECT_EQ(experiment_from_json(to_json(experiment)).settings.loss, loss);
  }
}

TEST(ExperimentJson, RejectsALossThatItDoesNotKnow) {
  json::object object = to_json(example());
  object.at("settings").as_object()["loss"] = "cut";

  EXPECT_THROW(experiment_from_json(object), std::invalid_argument);
}

TEST(ExperimentJson, WithoutAnAllocatorCountsExactly) {
  Experiment experiment = example();
  experiment.settings.allocator = AllocatorModel::exact;
  json::object earlier = to_json(experiment);
  earlier.at("settings").as_object().erase("allocator");

  EXPECT_EQ(experiment_from_json(earlier).key(), experiment.key());
}

TEST(ExperimentJson, RejectsAnAllocatorOrAnAttentionThatItDoesNotKnow) {
  json::object object = to_json(example());
  object.at("settings").as_object()["allocator"] = "buddy";

  EXPECT_THROW(experiment_from_json(object), std::invalid_argument);
  object = to_json(example());
  object.at("settings").as_object()["attention"] = "lazy";
  EXPECT_THROW(experiment_from_json(object), std::invalid_argument);
}

TEST(ExperimentKey, TellsAllocatorsApart) {
  Experiment exact = example();
  exact.settings.allocator = AllocatorModel::exact;

  EXPECT_NE(exact.key(), example().key());
}

TEST(ExperimentJson, RejectsWhatIsNoExperiment) {
  json::object object = to_json(example());
  object.at("settings").as_object().erase("seed");

  EXPECT_THROW(experiment_from_json(object), std::invalid_argument);
  EXPECT_THROW(experiment_from_json({}), std::invalid_argument);
}

TEST(ExperimentKey, IsTheSameWhateverTheOrderOfKeysNameAndTimeout) {
  const Experiment experiment = example();
  Experiment other = experiment;
  other.name = "another";
  other.settings.model.name = "examples/gpt2.json";
  other.settings.experiment_timeout = 5;
  other.ds_config = {{"optimizer", {{"params", {{"lr", 0.1 + 0.2}}}, {"type", "Adam"}}},
                     {"zero_optimization", {{"reduce_bucket_size", 500000000}, {"stage", 2}}},
                     {"train_micro_batch_size_per_gpu", 4}};

  EXPECT_EQ(other.key(), experiment.key());
}

TEST(ExperimentKey, HasTheHostsMemoryOnlyWhereSomethingIsOffloaded) {
  Experiment experiment = example();
  const std::string key = experiment.key();
  experiment.settings.host_memory_limit = 1 << 30;
  EXPECT_EQ(experiment.key(), key);
  EXPECT_EQ(experiment_from_json(to_json(experiment)).settings, experiment.settings);

  experiment.ds_config.set("zero_optimization",
                           {{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}});
  const std::string offloaded = experiment.key();
  experiment.settings.host_memory_limit = 2 << 20;
  EXPECT_NE(experiment.key(), offloaded);

  experiment.ds_config.set("zero_optimization",
                           {{"stage", 3}, {"offload_param", {{"device", "cpu"}}}});
  const std::string of_parameters = experiment.key();
  experiment.settings.host_memory_limit = 1 << 20;
  EXPECT_NE(experiment.key(), of_parameters);
}

TEST(ExperimentKey, HasTheOtherLimitsOfANodeOnlyWhereSomethingIsOffloaded) {
  for (Bytes RunSettings::*limit : {&RunSettings::pinned_limit, &RunSettings::drive_limit}) {
    Experiment experiment = example();
    const std::string key = experiment.key();
    experiment.settings.*limit = 1 << 30;
    EXPECT_EQ(experiment.key(), key);
    EXPECT_EQ(experiment_from_json(to_json(experiment)).settings, experiment.settings);

    experiment.ds_config.set("zero_optimization",
                             {{"stage", 3}, {"offload_optimizer", {{"device", "nvme"}}}});
    const std::string offloaded = experiment.key();
    experiment.settings.*limit = 2 << 20;
    EXPECT_NE(experiment.key(), offloaded);
  }
}

TEST(ExperimentKey, HasTheLimitOfADriveOnlyWhereOneIsUsed) {
  Experiment experiment = example();
  for (const char* device : {"cpu", "nvme"}) {
    experiment.ds_config.set("zero_optimization",
                             {{"stage", 3}, {"offload_param", {{"device", device}}}});
    experiment.settings.drive_limit = 1 << 20;
    const std::string key = experiment.key();
    experiment.settings.drive_limit = 2 << 20;
    EXPECT_EQ(experiment.key() == key, device == std::string("cpu"));
  }
}

TEST(RunSettings, HaveNoLimitWhereDryRunsAskWhatIsNeeded) {
  RunSettings settings;
  settings.memory_limit = 1;
  settings.pinned_limit = 3;
  settings.drive_limit = 4;
  EXPECT_EQ(settings.host_limits().held, kNoLimit) << "one memory";
  EXPECT_TRUE(settings.without_limits().is_one_memory());
  settings.host_memory_limit = 2;
  EXPECT_EQ(settings.host_limits().held, 2U);
  EXPECT_EQ(settings.host_limits().pinned, 3U);
  EXPECT_EQ(settings.host_limits().drive, 4U);

  const RunSettings without = settings.without_limits();

  EXPECT_EQ(without.memory_limit, kUnlimited);
  EXPECT_EQ(without.host_limits().held, kNoLimit);
  EXPECT_EQ(without.host_limits().pinned, kNoLimit);
  EXPECT_EQ(without.host_limits().drive, kNoLimit);
}

TEST(ExperimentKey, DiffersForWhateverChangesTheResult) {
  const auto key_after = [](auto change) {
    Experiment experiment = example();
    change(experiment);
    return experiment.key();
  };
  const std::string key = example().key();

  EXPECT_NE(key, key_after([](Experiment& e) { e.ranks = 4; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.ds_config.set("gradient_clipping", 1); }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.model.num_layers = 1; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.sequence_length = 128; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.memory_limit = 1; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.backend = "sim"; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.devices_per_node = 4; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.warmup_steps = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.measure_steps = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.least_warmup_time = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.least_measure_time = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.product_workspace.of_biases = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.seed = 9; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.host_overhead = {}; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.share_gpu = true; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.loss.kind = LossKind::fused; }));
  EXPECT_NE(key, key_after([](Experiment& e) { e.settings.loss.keep_logits = true; }));
}

TEST(Experiment, AReferenceIsNoRepetitionOfTheSearch) {
  Experiment again = example();
  again.repetition = 1;
  Experiment reference = again;
  reference.is_reference = true;

  EXPECT_NE(reference.key(), again.key());
  EXPECT_EQ(experiment_from_json(to_json(reference)).key(), reference.key());
  EXPECT_FALSE(to_json(again).contains("is_reference")) << "as in earlier journals";
}

TEST(Experiment, WhenToGiveUpMakesNoOther) {
  Experiment raced = example();
  raced.give_up_above = 0.25;

  EXPECT_EQ(raced.key(), example().key());
  EXPECT_EQ(experiment_from_json(to_json(raced)).give_up_above, 0.25);
  EXPECT_FALSE(to_json(example()).contains("give_up_above_s")) << "as in earlier journals";
}

TEST(Experiment, MeasuringTheMachineIsAnother) {
  Experiment machine = example();
  machine.measures_machine = true;

  EXPECT_NE(machine.key(), example().key());
  EXPECT_TRUE(experiment_from_json(to_json(machine)).measures_machine);
  EXPECT_EQ(experiment_from_json(to_json(machine)).key(), machine.key());
  EXPECT_FALSE(to_json(example()).contains("measures_machine")) << "as in earlier journals";
}

}  // namespace
}  // namespace dstune::experiment_test
