// Stage 3 with the optimizer in the host's memory: bytes, copies and waits against docs/offload.md,
// and steps that train as those on the device do.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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

namespace dstune::sharded_offload_test {
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

constexpr const char* kPinned = R"({"device": "cpu"})";
constexpr const char* kPageable = R"({"device": "cpu", "pin_memory": false})";
constexpr std::int64_t kSubGroup = 200;  // less than the model's 910: several sub-groups
constexpr DType kPrecisions[] = {DType::bf16, DType::fp16, DType::fp32};

struct Case {
  int ranks = 1;
  std::int64_t accumulation = 1;
  DType dtype = DType::bf16;
  const char* offload = kPinned;
  const char* root = "{}";
  std::int64_t sub_group_size = kSubGroup;
};

Experiment experiment_of(const Case& asked) {
  TinyExperiment tiny{3, asked.ranks, 1, asked.accumulation, asked.dtype, false};
  tiny.zero["offload_optimizer"] = parse_json(asked.offload);
  tiny.zero["sub_group_size"] = asked.sub_group_size;
  tiny.root = parse_json(asked.root).as_object();
  Experiment experiment = tiny.make();
  experiment.settings.host_memory_limit = kNoLimit;
  return experiment;
}

Measured measured(const Case& asked, int rank = 0) {
  return std::get<Measured>(dry_run(experiment_of(asked), rank).outcome);
}

/// The sizes that the formulas are about.
struct Sizes {
  Bytes p = 0;        // elements of a rank's shards, with padding
  Bytes real = 0;     // without
  Bytes largest = 0;  // elements of the largest sub-group's
  std::uint64_t groups = 0;
  std::uint64_t tensors = 0;  // of which this rank has something
  std::vector<Bytes> sub_groups;
};

Sizes sizes_of(const Case& asked, int rank = 0) {
  const ModelParameters parameters = make_model_parameters(test::tiny_model());
  const StepConfig config = make_step_config(experiment_of(asked));
  const ShardLayout layout(make_parameter_groups(config.optimizer, parameters), parameters,
                           asked.ranks, asked.sub_group_size);
  Sizes sizes;
  sizes.p = static_cast<Bytes>(layout.numel());
  sizes.groups = layout.sub_groups().size();
  for (const SubGroup& group : layout.sub_groups()) {
    sizes.sub_groups.push_back(static_cast<Bytes>(group.numel));
    sizes.largest = std::max(sizes.largest, sizes.sub_groups.back());
  }
  for (std::size_t tensor = 0; tensor < layout.tensor_count(); ++tensor) {
    const std::int64_t filled = layout.filled(tensor, rank);
    sizes.real += static_cast<Bytes>(filled);
    sizes.tensors += filled > 0 ? 1 : 0;
  }
  return sizes;
}

/// The most that the constructor has beside: the master's 4 p are there, and a scratch tensor of
/// the largest sub-group while the gradients are made.
Bytes peak_of_constructor(const Sizes& sizes, Bytes e, bool pins) {
  Bytes made = 0;
  Bytes most = 0;
  for (const Bytes group : sizes.sub_groups) {
    made += 4 * group;
    most = std::max(most, made + (pins ? 4 * group : 0));
  }
  return std::max(4 * sizes.p + 4 * sizes.largest + most,
                  8 * sizes.p + (pins ? 2 : 1) * e * sizes.p);
}

/// Beside master, gradients and `state` bytes of each parameter: a temporary tensor of the update,
/// or those of fp16's search for inf.
Bytes peak_of_step(const Sizes& sizes, DType dtype, Bytes state) {
  const Bytes e = size_of(dtype);
  const Bytes update = dtype == DType::fp32 ? 0 : e * sizes.largest;
  const Bytes search = dtype == DType::fp16 ? 3 * sizes.p : 0;
  return (8 + e + state) * sizes.p + std::max(update, search);
}

TEST(HostMemoryOfShardedOffload, IsThatOfTheTable) {
  for (const DType dtype : kPrecisions) {
    for (const int ranks : {1, 3}) {
      for (const std::int64_t sub_group_size : {kSubGroup, std::int64_t{1000}}) {
        Case asked{.ranks = ranks, .dtype = dtype, .sub_group_size = sub_group_size};
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << ranks << " " << sub_group_size);
        const Sizes sizes = sizes_of(asked);
        const Bytes e = size_of(dtype);
        const Bytes step = peak_of_step(sizes, dtype, 8);
        const HostUse pinned = measured(asked).peak_host_memory.at_peak;
        EXPECT_EQ(pinned.total(), std::max(step, peak_of_constructor(sizes, e, true)));
        if (step > peak_of_constructor(sizes, e, true)) {
          EXPECT_EQ(pinned.pinned, (4 + e) * sizes.p);
        }

        asked.offload = kPageable;
        const PeakHostMemory pageable = measured(asked).peak_host_memory;
        EXPECT_EQ(pageable.at_peak.pinned, 0U);
        EXPECT_EQ(pageable.held, std::max(step, peak_of_constructor(sizes, e, false)));
      }
    }
  }
}

TEST(HostMemoryOfShardedOffload, DoesNotGrowWithMicroSteps) {
  const PeakHostMemory one = measured({.accumulation = 1}).peak_host_memory;
  EXPECT_EQ(measured({.accumulation = 3}).peak_host_memory, one);
}

TEST(HostMemoryOfShardedOffload, IsPinnedInPowersOfTwoForEachSubGroup) {
  const Sizes sizes = sizes_of({});
  ASSERT_GT(sizes.groups, 2U);
  Bytes blocks = PinnedModel::block_size(2 * sizes.p);
  for (const Bytes group : sizes.sub_groups) blocks += PinnedModel::block_size(4 * group);

  EXPECT_EQ(measured({}).peak_host_memory.held, blocks + 12 * sizes.p + 2 * sizes.largest);
}

// Adagrad has half of Adam's state, so that a step takes no more than its tensors took when they
// were made: the master, a scratch tensor that is not used, and the gradients twice.
TEST(HostMemoryOfShardedOffload, IsThatOfTheConstructorWhereTheStateIsSmall) {
  const char* adagrad = R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1e-4}}})";
  Case asked{.root = adagrad, .sub_group_size = 1000};
  const Bytes p = sizes_of(asked).p;
  EXPECT_EQ(measured(asked).peak_host_memory.at_peak, (HostUse{4 * p, 12 * p}));

  asked.offload = kPageable;
  EXPECT_EQ(measured(asked).peak_host_memory.at_peak, (HostUse{0, 16 * p}));
}

TEST(HostMemoryOfShardedOffload, LeavesOnTheDeviceWhatGathersAndReductionsNeed) {
  const MemoryUse own = measured({.ranks = 2}).peak_memory.categories;
  EXPECT_EQ(own.at(MemoryCategory::optimizer), 0U);

  TinyExperiment tiny{3, 2, 1, 1, DType::bf16, false};
  const MemoryUse other =
      std::get<Measured>(dry_run(tiny.make(), 0).outcome).peak_memory.categories;
  EXPECT_EQ(own.at(MemoryCategory::parameters), other.at(MemoryCategory::parameters));
  EXPECT_EQ(own.at(MemoryCategory::buckets), other.at(MemoryCategory::buckets));
  EXPECT_EQ(other.at(MemoryCategory::gradients) - own.at(MemoryCategory::gradients),
            2 * sizes_of({.ranks = 2}).p);
}

TEST(CopiesOfShardedOffload, AreThoseOfTheTable) {
  for (const int ranks : {1, 3}) {
    for (const std::int64_t accumulation : {1, 3, 7}) {
      for (const DType dtype : kPrecisions) {
        const int rank = ranks - 1;  // whose shards are padded
        const Case asked{.ranks = ranks, .accumulation = accumulation, .dtype = dtype};
        SCOPED_TRACE(testing::Message()
                     << ranks << " ranks, " << accumulation << " micro-steps, " << name_of(dtype));
        const Ledger ledger = measured(asked, rank).ledger;
        const Sizes sizes = sizes_of(asked, rank);
        EXPECT_EQ(sizes.real<sizes.p, ranks> 1);
        const auto times = static_cast<std::uint64_t>(accumulation);
        const Bytes e = size_of(dtype);
        using enum TransferPurpose;
        const Copies sums{times * sizes.tensors, times * e * sizes.real};
        EXPECT_EQ(copies(ledger, gradient_shard, Transfer::device_to_host), sums);
        EXPECT_EQ(copies(ledger, gradient_shard, Transfer::host_to_device), sums);
        EXPECT_EQ(copies(ledger, gradient, Transfer::device_to_host),
                  Copies(sizes.tensors, 4 * sizes.real));
        EXPECT_EQ(copies(ledger, update, Transfer::host_to_device),
                  Copies(sizes.groups, e * sizes.p));
        EXPECT_EQ(copies(ledger, update, Transfer::device_to_host), Copies());
        EXPECT_EQ(copies(ledger, gradient_sum, Transfer::device_to_host), Copies());
      }
    }
  }
}

// Of the blocking copies a sub-group has the two numbers of its norm up, the norm down and its
// parameters up.
TEST(WaitsOfShardedOffload, AreFiveForEachSubGroupAndNoneForGradients) {
  for (const std::int64_t accumulation : {1, 3}) {
    const Case asked{.ranks = 2, .accumulation = accumulation};
    const std::uint64_t groups = sizes_of(asked).groups;
    const Ledger ledger = measured(asked).ledger;
    EXPECT_EQ(waits(ledger, HostSync::offload_norm), groups);
    EXPECT_EQ(waits(ledger, HostSync::blocking_copy), 4 * groups);
    EXPECT_EQ(waits(ledger, HostSync::reduction), static_cast<std::uint64_t>(accumulation));
    EXPECT_EQ(waits(ledger, HostSync::overflow), 0U);
    EXPECT_EQ(waits(ledger, HostSync::offload_copy), 0U);
  }
}

TEST(WaitsOfShardedOffload, OfHalfPrecisionAreTwoMoreForTheFlag) {
  const Case asked{.ranks = 2, .dtype = DType::fp16};
  const Ledger ledger = measured(asked).ledger;
  EXPECT_EQ(waits(ledger, HostSync::overflow), 1U);
  EXPECT_EQ(waits(ledger, HostSync::blocking_copy), 4 * sizes_of(asked).groups + 1);
}

// A driver copies pageable memory by itself, while the host waits.
TEST(WaitsOfShardedOffload, AreOneForEachCopyOfPageableMemory) {
  const Case asked{.ranks = 2, .offload = kPageable};
  const Sizes sizes = sizes_of(asked);
  EXPECT_EQ(waits(measured(asked).ledger, HostSync::blocking_copy),
            4 * sizes.groups + 3 * sizes.tensors);
}

/// The first of the sub-groups, as DeepSpeed counts them, and the others.
std::pair<Bytes, Bytes> divided(const Sizes& sizes, std::size_t on_device) {
  Bytes first = 0;
  for (std::size_t i = 0; i < on_device; ++i) first += sizes.sub_groups[i];
  return {first, sizes.p - first};
}

TEST(RatioOfShardedOffload, LeavesTheFirstSubGroupsOnTheDevice) {
  const Sizes sizes = sizes_of({});
  ASSERT_EQ(sizes.groups, 5U);
  for (const auto& [ratio, expected] :
       {std::pair{"1.0", 0U}, std::pair{"0.9", 0U}, std::pair{"0.5", 2U}, std::pair{"0.4", 3U},
        std::pair{"0.25", 3U}, std::pair{"0.0", 5U}}) {
    SCOPED_TRACE(ratio);
    const std::string offload = concat(R"({"device": "cpu", "ratio": )", ratio, "}");
    const auto [on_device, on_host] = divided(sizes, expected);
    const Measured found = measured({.offload = offload.c_str()});
    EXPECT_EQ(found.peak_memory.categories.at(MemoryCategory::optimizer), 12 * on_device);
    EXPECT_EQ(copies(found.ledger, TransferPurpose::gradient, Transfer::device_to_host).second,
              4 * on_host);
    EXPECT_EQ(copies(found.ledger, TransferPurpose::update, Transfer::host_to_device),
              Copies(sizes.groups - expected, 2 * on_host));
    EXPECT_EQ(waits(found.ledger, HostSync::offload_norm), sizes.groups);
    EXPECT_EQ(waits(found.ledger, HostSync::blocking_copy), 4 * sizes.groups - expected);
  }
}

// What was pinned for the gradients of sub-groups on the device stays in PyTorch's cache.
TEST(RatioOfShardedOffload, KeepsItsGradientsPinnedOnTheHostForNothing) {
  const Case asked{.offload = R"({"device": "cpu", "ratio": 0.5})"};
  const Sizes sizes = sizes_of(asked);
  const auto [on_device, on_host] = divided(sizes, 2);
  const PeakHostMemory peak = measured(asked).peak_host_memory;
  EXPECT_EQ(peak.at_peak.pinned, 2 * sizes.p + 4 * on_host);
  Bytes blocks = PinnedModel::block_size(2 * sizes.p);
  for (const Bytes group : sizes.sub_groups) blocks += PinnedModel::block_size(4 * group);
  EXPECT_GT(peak.held, 2 * sizes.p + 4 * on_host + 12 * on_host);
  EXPECT_LE(peak.held, blocks + 12 * on_host + 2 * sizes.largest + 2 * sizeof(float));
}

TEST(PassesOfShardedOffload, AreThoseOfTheTableOnTheHost) {
  const auto host_bytes = [](const Case& asked) {
    Bytes bytes = 0;
    const Ledger ledger = measured(asked).ledger;
    for (const HostPassLine& line : ledger.host_passes()) {
      bytes += line.read + line.written;
    }
    return bytes;
  };
  const Bytes p = sizes_of({}).p;
  EXPECT_EQ(host_bytes({}), 42 * p);
  EXPECT_EQ(host_bytes({.root = R"({"gradient_clipping": 0})"}), 42 * p);
  EXPECT_EQ(host_bytes({.dtype = DType::fp32}), 36 * p);
  EXPECT_EQ(host_bytes({.dtype = DType::fp16}), (42 + 12) * p);
}

json::object in_precision(const Split& split, const char* precision, const char* zero_keys) {
  json::object config = config_of(split, zero_keys);
  if (precision != nullptr) config[precision] = {{"enabled", true}};
  if (precision != nullptr && std::string_view(precision) == "fp16") {
    config[precision].as_object()["loss_scale"] = 128;
  }
  return config;
}

class TrainingWithShardedOffload : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, TrainingWithShardedOffload, testing::ValuesIn(sharded_splits()),
                         test::name_of_split);

// The same numbers are added in the same order: what differs is the rounding of a factor and of the
// sum of norms. In 16 bits it may tip the rounding of a parameter, which is 2^-8 of it in bf16 and
// 2^-11 in fp16, in each of the steps.
double tolerance_of(const char* precision, int steps) {
  if (precision == nullptr) return 1e-5;
  return steps * std::ldexp(1.0, std::string_view(precision) == "bf16" ? -8 : -11);
}

TEST_P(TrainingWithShardedOffload, IsThatWithout) {
  constexpr int kSteps = 3;
  for (const char* precision : {"bf16", "fp16", static_cast<const char*>(nullptr)}) {
    SCOPED_TRACE(precision == nullptr ? "fp32" : precision);
    const Split& split = GetParam();
    const auto without = run_training(in_precision(split, precision, "{}"), split.ranks, kSteps);
    for (const char* zero : {R"({"offload_optimizer": {"device": "cpu"}})",
                             R"({"offload_optimizer": {"device": "cpu", "pin_memory": false},
                                 "overlap_comm": false, "sub_group_size": 100})",
                             R"({"offload_optimizer": {"device": "cpu", "ratio": 0.5},
                                 "sub_group_size": 100})"}) {
      const auto with = run_training(in_precision(split, precision, zero), split.ranks, kSteps);
      EXPECT_LT(largest_difference(with, without), tolerance_of(precision, kSteps));
      EXPECT_LT(largest_difference(with.norms, without.norms), tolerance_of(precision, kSteps));
      EXPECT_LT(largest_difference(with.losses, without.losses), tolerance_of(precision, kSteps));
    }
  }
}

TEST(ConfigurationsOfShardedOffload, ThatTheStepDoesNotHaveAreSkippedByName) {
  const std::string named = "not modelled: zero_optimization.offload_optimizer";
  const char* cpu = R"({"offload_optimizer": {"device": "cpu"}})";
  EXPECT_EQ(skip_reason_of_stage_3(cpu), "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "none", "ratio": 0.5}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "cpu", "ratio": 0.5}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "cpu", "ratio": 0.5}})",
                                   R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1e-4}}})"),
            named + ".ratio below 1 with an optimizer other than Adam (a DeepSpeed bug)");
  EXPECT_EQ(
      skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "cpu", "super_offload": true}})"),
      named + ".super_offload");
  EXPECT_EQ(skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "cpu"},
                       "offload_param": {"device": "cpu"}})"),
            "runs");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_optimizer": {"device": "cpu"}, "zero_quantized_gradients": true})"),
            named + " with zero_quantized_gradients");
  EXPECT_EQ(
      skip_reason_of_stage_3(R"({"offload_optimizer": {"device": "cpu"}, "mics_shard_size": 1})"),
      named + " with mics_shard_size");
  EXPECT_EQ(skip_reason_of_stage_3(
                R"({"offload_optimizer": {"device": "cpu"}, "zero_hpz_partition_size": 2})"),
            named + " with zero_hpz_partition_size");
  EXPECT_EQ(skip_reason_of_stage_3(cpu, R"({"data_types": {"grad_accum_dtype": "fp32"}})"),
            named + " with data_types.grad_accum_dtype in stage 3");
  EXPECT_EQ(skip_reason_of_stage_3(
                cpu, R"({"optimizer": {"type": "SGD"}, "zero_allow_untested_optimizer": true})"),
            named + " with an optimizer that has no CPU kernel");
  EXPECT_EQ(skip_reason_of_stage_3(cpu, R"({"dstune": {"deepspeed_version": "0.18.9"}})"),
            named + " before DeepSpeed 0.19.8");
}

}  // namespace
}  // namespace dstune::sharded_offload_test
