// Stage 3 with parameters in the host's memory, with and without the optimizer there: bytes, copies
// and waits against docs/offload.md, and steps that train as those without do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/ledger_sums.hpp"
#include "tests/support/skip_reason.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::parameter_offload_test {
namespace {

using test::config_of;
using test::Copies;
using test::copies;
using test::largest_difference;
using test::run_training;
using test::sharded_splits;
using test::skip_reason_of_stage_3;
using test::Split;
using test::TinyExperiment;
using test::waits;

constexpr std::int64_t kSubGroup = 200;  // less than the model's 910: several sub-groups
constexpr DType kPrecisions[] = {DType::bf16, DType::fp16, DType::fp32};
constexpr const char* kParameters = R"({"offload_param": {"device": "cpu"}})";
constexpr const char* kUnpinned = R"({"offload_param": {"device": "cpu", "pin_memory": false}})";
constexpr const char* kBoth = R"({"offload_param": {"device": "cpu", "pin_memory": false},
                                  "offload_optimizer": {"device": "cpu"}})";

/// A model of which the first layer and both tables are frozen.
ModelSpec half_frozen() {
  ModelSpec model = test::tiny_model();
  model.fine_tuning.trainable = {"transformer.h.1.*"};
  return model;
}

struct Case {
  int ranks = 2;
  std::int64_t accumulation = 1;
  DType dtype = DType::bf16;
  const char* offload = kParameters;
  const char* others = "{}";
  std::int64_t sub_group_size = kSubGroup;
  ModelSpec model = test::tiny_model();
};

Experiment experiment_of(const Case& asked) {
  TinyExperiment tiny{3, asked.ranks, 1, asked.accumulation, asked.dtype, false};
  tiny.model = asked.model;
  tiny.zero = parse_json(asked.offload).as_object();
  tiny.zero["sub_group_size"] = asked.sub_group_size;
  const json::value others = parse_json(asked.others);
  for (const auto& [key, value] : others.as_object()) tiny.zero[key] = value;
  Experiment experiment = tiny.make();
  experiment.settings.host_memory_limit = kNoLimit;
  return experiment;
}

Measured measured(const Case& asked, int rank = 0) {
  return std::get<Measured>(dry_run(experiment_of(asked), rank).outcome);
}

ShardLayout layout_of(const Case& asked) {
  const ModelParameters parameters = make_model_parameters(asked.model);
  const StepConfig config = make_step_config(experiment_of(asked));
  return {make_parameter_groups(config.optimizer, parameters), parameters, asked.ranks,
          asked.sub_group_size};
}

Bytes largest_sub_group(const ShardLayout& layout) {
  std::int64_t largest = 0;
  for (const SubGroup& group : layout.sub_groups()) largest = std::max(largest, group.numel);
  return static_cast<Bytes>(largest);
}

TEST(HostMemoryOfParameters, IsTheShardsAndAnUpdateThatIsConverted) {
  for (const DType dtype : kPrecisions) {
    for (const int ranks : {1, 3}) {
      const Case asked{.ranks = ranks, .dtype = dtype, .offload = kUnpinned};
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << ranks);
      const ShardLayout layout = layout_of(asked);
      const Bytes shards = size_of(dtype) * static_cast<Bytes>(layout.numel());
      const Bytes update = dtype == DType::fp32 ? 0 : 4 * largest_sub_group(layout);

      const HostUse peak = measured(asked).peak_host_memory.at_peak;

      EXPECT_EQ(peak.pinned, shards);
      // Where they are made there are besides what they were made as, and what the pinned tensor
      // was made of.
      EXPECT_EQ(peak.pageable, std::max(update, 2 * shards));
    }
  }
}

TEST(HostMemoryOfParameters, ComesOnTopOfThatOfTheOptimizer) {
  const Case both{.offload = kBoth};
  const ShardLayout layout = layout_of(both);
  const auto p = static_cast<Bytes>(layout.numel());
  const Case optimizer{.offload = R"({"offload_optimizer": {"device": "cpu"}})"};

  const HostUse with = measured(both).peak_host_memory.at_peak;
  const HostUse without = measured(optimizer).peak_host_memory.at_peak;

  // What is updated is not converted into a temporary tensor, but into the shards.
  EXPECT_EQ(with, (HostUse{(4 + 2 + 2) * p, 12 * p}));
  EXPECT_EQ(without, (HostUse{(4 + 2) * p, 12 * p + 2 * largest_sub_group(layout)}));
}

TEST(HostMemoryOfParameters, KeepsTheBlocksInWhichPinnedShardsWereMade) {
  const Case asked{.dtype = DType::fp32};
  const ShardLayout layout = layout_of(asked);
  const auto block = [](std::int64_t numel) {
    return PinnedModel::block_size(4 * static_cast<Bytes>(numel));
  };
  Bytes blocks = block(layout.numel());
  for (std::size_t tensor = 0; tensor < layout.tensor_count(); ++tensor) {
    blocks += block(layout.shard(tensor));
  }

  const Bytes original = 4 * static_cast<Bytes>(layout.numel());  // of the pinned tensor
  EXPECT_EQ(measured(asked).peak_host_memory.held, blocks + original);
  EXPECT_EQ(measured({.dtype = DType::fp32, .offload = kUnpinned}).peak_host_memory.held,
            block(layout.numel()) + 2 * original);
}

TEST(HostMemoryOfParameters, HasFrozenShardsAsTheyWereMade) {
  for (const bool pins : {false, true}) {
    const Case asked{
        .dtype = DType::fp32, .offload = pins ? kParameters : kUnpinned, .model = half_frozen()};
    const ShardLayout layout = layout_of(asked);
    const Bytes trained = 4 * static_cast<Bytes>(layout.numel());
    const Bytes frozen = 4 * static_cast<Bytes>(layout.held() - layout.numel());
    ASSERT_GT(frozen, 0U);
    const Measured found = measured(asked);

    const HostUse peak = found.peak_host_memory.at_peak;
    const Bytes alone = trained + frozen;
    EXPECT_EQ(peak, (HostUse{trained + (pins ? alone : 0), trained + (pins ? 0 : alone)}));
    const bool copies_pageable =
        std::ranges::any_of(found.ledger.transfers(), [](const TransferLine& line) {
          return line.purpose == TransferPurpose::parameter && line.tier == Tier::pageable;
        });
    EXPECT_EQ(copies_pageable, !pins);
  }
}

TEST(DeviceMemoryOfOffloadedParameters, HasNoShards) {
  const Case asked{};
  const Case without{.offload = "{}"};
  const MemoryUse own = measured(asked).peak_memory.categories;
  const MemoryUse other = measured(without).peak_memory.categories;

  EXPECT_EQ(other.at(MemoryCategory::parameters) - own.at(MemoryCategory::parameters),
            2 * static_cast<Bytes>(layout_of(asked).numel()));
  EXPECT_EQ(own.at(MemoryCategory::optimizer), other.at(MemoryCategory::optimizer));
  EXPECT_EQ(own.at(MemoryCategory::gradients), other.at(MemoryCategory::gradients));
}

/// Elements of all tensors that are gathered, each time they are, with padding.
std::uint64_t gathered(const Ledger& ledger) {
  std::uint64_t sum = 0;
  for (const CollectiveLine& line : ledger.collectives()) {
    const bool counts = line.purpose == Purpose::parameters || line.purpose == Purpose::persistent;
    sum += counts ? line.elements : 0;
  }
  return sum;
}

const char* const kGathers[] = {
    "{}",
    R"({"stage3_param_persistence_threshold": 12, "stage3_prefetch_bucket_size": 500,
        "stage3_max_live_parameters": 1500, "stage3_max_reuse_distance": 0})",
    R"({"stage3_param_persistence_threshold": 6, "stage3_allgather_sequential": true,
        "overlap_comm": false})"};

TEST(CopiesOfParameters, BringWhatIsGatheredAndTheHostWaitsForEach) {
  for (const char* others : kGathers) {
    for (const std::int64_t accumulation : {1, 3}) {
      SCOPED_TRACE(testing::Message() << others << accumulation);
      const Case asked{.accumulation = accumulation, .others = others};
      const Ledger ledger = measured(asked).ledger;

      const Copies brought = copies(ledger, TransferPurpose::parameter, Transfer::host_to_device);

      EXPECT_EQ(2 * brought.second, 2 * gathered(ledger));  // 2 ranks; 2 bytes
      const std::uint64_t groups = layout_of(asked).sub_groups().size();
      EXPECT_EQ(waits(ledger, HostSync::blocking_copy), brought.first + groups);
      EXPECT_EQ(copies(ledger, TransferPurpose::parameter, Transfer::device_to_host), Copies());
    }
  }
}

TEST(CopiesOfParameters, AreTheSameGathersAsOfShardsOnTheDevice) {
  for (const char* others : kGathers) {
    const Ledger with = measured({.others = others}).ledger;
    const Ledger without = measured({.offload = "{}", .others = others}).ledger;
    EXPECT_EQ(with.collectives(), without.collectives()) << others;
  }
}

// An all_reduce takes shards where they are summed: nothing is packed.
TEST(CopiesOfParameters, GoIntoTheMessageOfAnAllReduce) {
  const auto packed = [](const char* offload) {
    const Case asked{.offload = offload,
                     .others = R"({"stage3_use_all_reduce_for_fetch_params": true,
                                   "stage3_param_persistence_threshold": 0})"};
    const Ledger ledger = measured(asked).ledger;
    Bytes read = 0;
    for (const PassLine& line : ledger.passes()) {
      if (line.pass == MemoryPass::gather_pack) read += line.read;
    }
    return read;
  };
  EXPECT_EQ(packed(kParameters), 0U);
  EXPECT_GT(packed("{}"), 0U);
}

TEST(CopiesOfParameters, OfOneRankAreAwaitedTogether) {
  const Case asked{.ranks = 1};
  const Ledger with = measured(asked).ledger;
  const Ledger without = measured({.ranks = 1, .offload = "{}"}).ledger;

  EXPECT_GT(copies(with, TransferPurpose::parameter, Transfer::host_to_device).first, 0U);
  EXPECT_EQ(waits(with, HostSync::blocking_copy), layout_of(asked).sub_groups().size());
  EXPECT_EQ(waits(with, HostSync::parameters), waits(without, HostSync::parameters));
}

TEST(CopiesOfParameters, TakeTheUpdateDownInFp32WhereTheDeviceMakesIt) {
  for (const DType dtype : kPrecisions) {
    const Case asked{.dtype = dtype};
    const ShardLayout layout = layout_of(asked);
    const auto p = static_cast<Bytes>(layout.numel());
    const Ledger ledger = measured(asked).ledger;
    using enum TransferPurpose;

    EXPECT_EQ(copies(ledger, update, Transfer::device_to_host),
              Copies(layout.sub_groups().size(), 4 * p));
    EXPECT_EQ(copies(ledger, update, Transfer::host_to_device), Copies());
    Bytes converted = 0;
    for (const HostPassLine& line : ledger.host_passes()) converted += line.read + line.written;
    EXPECT_EQ(converted, dtype == DType::fp32 ? 0 : (4 + 2) * p);
  }
}

// Half of the sub-groups come down, and the host converts all of them.
TEST(CopiesOfParameters, TakeTheUpdateDownOfSubGroupsThatARatioLeavesOnTheDevice) {
  for (const DType dtype : kPrecisions) {
    SCOPED_TRACE(name_of(dtype));
    const Case asked{.dtype = dtype,
                     .offload = R"({"offload_param": {"device": "cpu"},
                                    "offload_optimizer": {"device": "cpu", "ratio": 0.5}})",
                     .sub_group_size = 100};
    const ShardLayout layout = layout_of(asked);
    const std::size_t on_device = layout.sub_groups().size() / 2;
    ASSERT_GT(on_device, 1U);
    const auto p = static_cast<Bytes>(layout.numel());
    const auto d = static_cast<Bytes>(layout.sub_groups()[on_device].offset);
    const Bytes h = p - d;
    const Measured found = measured(asked);
    using enum TransferPurpose;

    EXPECT_EQ(copies(found.ledger, update, Transfer::device_to_host), Copies(on_device, 4 * d));
    EXPECT_EQ(copies(found.ledger, update, Transfer::host_to_device), Copies());
    EXPECT_EQ(found.peak_memory.categories.at(MemoryCategory::optimizer), 12 * d);
    Bytes passed = 0;
    for (const HostPassLine& line : found.ledger.host_passes()) passed += line.read + line.written;
    const Bytes e = size_of(dtype);
    EXPECT_EQ(passed, (36 + 4 + e) * h + (dtype == DType::fp32 ? 0 : (4 + e) * d) +
                          (dtype == DType::fp16 ? 12 * p : 0));
  }
}

TEST(CopiesOfParameters, HaveNoUpdateWhereTheHostMakesIt) {
  const Case asked{.offload = kBoth};
  const Ledger ledger = measured(asked).ledger;
  using enum TransferPurpose;

  EXPECT_EQ(copies(ledger, update, Transfer::device_to_host), Copies());
  EXPECT_EQ(copies(ledger, update, Transfer::host_to_device), Copies());
}

json::object in_precision(const Split& split, const char* precision, const std::string& zero_keys) {
  json::object config = config_of(split, zero_keys);
  if (precision != nullptr) config[precision] = {{"enabled", true}};
  if (precision != nullptr && std::string_view(precision) == "fp16") {
    config[precision].as_object()["loss_scale"] = 128;
  }
  return config;
}

class TrainingWithParametersOnTheHost : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, TrainingWithParametersOnTheHost,
                         testing::ValuesIn(sharded_splits()), test::name_of_split);

// Nothing is computed in another way: the numbers are the same to the bit.
TEST_P(TrainingWithParametersOnTheHost, IsThatWithThemOnTheDevice) {
  constexpr int kSteps = 3;
  for (const char* precision : {"bf16", "fp16", static_cast<const char*>(nullptr)}) {
    for (const char* optimizer : {R"("none")", R"("cpu")", R"("cpu", "ratio": 0.5)"}) {
      const Split& split = GetParam();
      SCOPED_TRACE(concat(precision == nullptr ? "fp32" : precision, ", optimizer ", optimizer));
      const std::string others = concat(R"({"offload_optimizer": {"device": )", optimizer, R"(},
                     "stage3_param_persistence_threshold": 12, "sub_group_size": 200)");
      const auto without =
          run_training(in_precision(split, precision, concat(others, "}")), split.ranks, kSteps);
      for (const char* pins : {"true", "false"}) {
        const std::string own =
            concat(others, R"(, "offload_param": {"device": "cpu", "pin_memory": )", pins, "}}");
        const auto with = run_training(in_precision(split, precision, own), split.ranks, kSteps);
        EXPECT_EQ(with.parameters, without.parameters);
        EXPECT_EQ(with.norms, without.norms);
        EXPECT_EQ(with.losses, without.losses);
      }
    }
  }
}

TEST(TrainingOfAPart, IsThatWithParametersOnTheDevice) {
  RunSettings settings = test::tiny_settings();
  settings.model.fine_tuning.trainable = {"transformer.h.1.*"};
  const auto train = [&](const char* zero) {
    const Split split{3, 3, 2};
    return run_training(make_step_config(in_precision(split, "bf16", zero)), 3, 2, settings);
  };
  const auto without = train(R"({"stage3_param_persistence_threshold": 12})");
  for (const char* zero : {R"({"stage3_param_persistence_threshold": 12,
                               "offload_param": {"device": "cpu"}})",
                           R"({"stage3_param_persistence_threshold": 12,
                               "offload_param": {"device": "cpu", "pin_memory": false}})"}) {
    EXPECT_EQ(train(zero).parameters, without.parameters) << zero;
  }
}

TEST(ConfigurationsOfOffloadedParameters, ThatTheStepDoesNotHaveAreSkippedByName) {
  const std::string named = "not modelled: zero_optimization.offload_param";
  const char* cpu = kParameters;
  EXPECT_EQ(skip_reason_of_stage_3(cpu), "runs");
  EXPECT_EQ(skip_reason_of_stage_3(kBoth), "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "none", "pin_memory": true}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_param": {"device": "cpu", "buffer_count": 5, "buffer_size": 1000,
                                         "max_in_cpu": 1}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "nvme", "nvme_path": "/tmp"}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "nvme", "nvme_path": "/tmp"}})",
                                   R"({"aio": {"use_gds": true}})"),
            "not modelled: aio.use_gds");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_param": {"device": "cpu"}, "zero_quantized_weights": true})"),
            named + " with zero_quantized_weights");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "cpu"}, "mics_shard_size": 1})"),
            named + " with mics_shard_size");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_param": {"device": "cpu"}, "zero_hpz_partition_size": 2})"),
            named + " with zero_hpz_partition_size");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "cpu"},
                       "offload_optimizer": {"device": "cpu", "ratio": 0.5}})",
                                   R"({"optimizer": {"type": "AdamW"}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_param": {"device": "nvme", "nvme_path": "/tmp"},
                       "offload_optimizer": {"device": "cpu", "ratio": 0.5}})"),
            named + ".device nvme with offload_optimizer.ratio below 1");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"cpu_offload_param": true})"),
            "not modelled: zero_optimization.cpu_offload_param");
  EXPECT_EQ(skip_reason_of_stage_3(cpu, R"({"dstune": {"deepspeed_version": "0.18.9"}})"),
            named + " before DeepSpeed 0.19.8");
}

}  // namespace
}  // namespace dstune::parameter_offload_test
