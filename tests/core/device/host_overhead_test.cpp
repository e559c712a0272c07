// The numbers of a profile: their JSON form, presets, and what they say of messages.
#include "core/device/host_overhead.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"

namespace dstune::host_overhead_test {
namespace {

HostOverhead preset(std::string_view name) { return host_overhead_preset(name).value(); }

/// A profile that somebody measured, as gloo's costs are.
HostOverhead measured_profile() {
  HostOverhead overhead = preset(kCudaOverhead);
  overhead.spread_factor = 1;
  overhead.uncertainty = {1e-6 / 3, 2e-6, 3e-6, 4e-6, 5e-6 / 7};
  overhead.collectives = {
      {CollectiveKind::all_gather, DType::fp32, 3e-4, 4e-5 / 3, 5e8, 5e7},
      {CollectiveKind::all_gather, DType::bf16, 2e-4, 4e-5, 2.5e8 / 3, 5e7},
      {CollectiveKind::all_reduce, DType::fp32, 1e-3, 4e-5, 1e9, 5e7},
      {CollectiveKind::reduce_scatter, DType::fp32, 1e-3, 0, 1e9, 0, 1000, 1e9 / 3, 1e7},
  };
  overhead.products = {{DType::fp32, 2, 1e11 / 3, 1e-5 / 3, 1e-10 / 3}};
  overhead.attention = {{DType::bf16, 2, {1e-7 / 3, 1e11 / 7}, {2e-6 / 3, 1e10 / 7}},
                        {DType::bf16, 2, {2e-7, 1e9 / 7}, {1e-7, 1e9 / 9}, true}};
  overhead.operations = {{TimedOperation::gelu_new, DType::fp32, 2, 1e-9 / 3, 2e-9 / 3}};
  overhead.origin = "mine.json, measured on node1";
  return overhead;
}

TEST(HostOverhead, ReadsBackToTheSameBits) {
  HostOverhead overhead = measured_profile();
  overhead.at(HostEvent::collective) = 1e-6 / 3;
  overhead.at(HostEvent::gathered_tensor) = 2e-4 / 3;

  const std::string text = to_json_text(to_json(overhead), 0);

  EXPECT_EQ(host_overhead_from_json(parse_json(text).as_object()), overhead);
}

TEST(HostOverhead, OfEarlierJournalsIsAsUncertainAsAPreset) {
  const json::object earlier = parse_json(R"({"gradient_hook": 50e-6, "module_hook": 150e-6,
      "collective": 60e-6, "optimizer_tensor": 60e-6, "synchronization": 20e-6})")
                                   .as_object();

  EXPECT_EQ(preset_of(host_overhead_from_json(earlier)), kCudaOverhead);

  json::object none = earlier;
  for (auto& member : none) member.value() = 0;
  EXPECT_EQ(host_overhead_from_json(none), preset(kNoOverhead));
}

TEST(HostOverhead, OfEarlierJournalsPaysPipelinedCollectivesInFull) {
  const json::object earlier = parse_json(R"({"gradient_hook": 1, "module_hook": 2,
      "collective": 3, "optimizer_tensor": 4, "synchronization": 5})")
                                   .as_object();

  EXPECT_EQ(host_overhead_from_json(earlier).at(HostEvent::pipelined_collective), 3);
  json::object calibrated = to_json(measured_profile());
  calibrated.erase("pipelined_collective");
  EXPECT_DOUBLE_EQ(host_overhead_from_json(calibrated).at(HostEvent::pipelined_collective),
                   60e-6 + 3e-4);
}

TEST(HostOverhead, OfEarlierJournalsHasFewerAndDearerHooks) {
  HostOverhead own = measured_profile();
  own.uncertainty.fill(1e-6);
  own.at(HostEvent::sub_module_hook) = 1e-3;
  json::object earlier = to_json(own);
  earlier.erase(name_of(HostEvent::sub_module_hook));
  earlier[kEarlierHook] = 1.97e-3;
  json::object& uncertainty = earlier.at("uncertainty").as_object();
  uncertainty.erase(name_of(HostEvent::sub_module_hook));
  uncertainty[kEarlierHook] = 1.97e-4;

  const HostOverhead read = host_overhead_from_json(earlier);

  EXPECT_EQ(read.at(HostEvent::sub_module_hook), 1.97e-3) << "results with it are not mixed";
  EXPECT_EQ(read.uncertainty_of(HostEvent::sub_module_hook), 1.97e-4);
  EXPECT_NE(read, own);
}

// What hooks cost in those versions holds it.
TEST(HostOverhead, OfEarlierJournalsHasNoTimeForGatheredTensors) {
  HostOverhead own = measured_profile();
  own.at(HostEvent::gathered_tensor) = 2e-4;
  json::object earlier = to_json(own);
  earlier.erase("gathered_tensor");
  earlier.at("uncertainty").as_object().erase("gathered_tensor");

  EXPECT_EQ(host_overhead_from_json(earlier), measured_profile());
}

TEST(HostOverhead, TellsWhereAProfileComesFrom) {
  EXPECT_EQ(describe(preset(kGlooOverhead)), "preset cpu-gloo");
  EXPECT_EQ(describe(measured_profile()), "profile mine.json, measured on node1");
  HostOverhead unknown = measured_profile();
  unknown.origin = "";
  EXPECT_EQ(describe(unknown), "a profile");
}

TEST(HostOverhead, TakesTheBandwidthOfItsLibraryOnTheBus) {
  const HostOverhead overhead = measured_profile();
  const auto time = [&](CollectiveKind kind, DType dtype, int ranks) {
    return library_time(overhead, kind, dtype, 1'000'000'000, ranks);
  };

  EXPECT_DOUBLE_EQ(time(CollectiveKind::all_gather, DType::fp32, 4), 3e-4 + 0.75 * 1e9 / 5e8);
  EXPECT_DOUBLE_EQ(time(CollectiveKind::all_reduce, DType::fp32, 4), 1e-3 + 1.5 * 1e9 / 1e9);
  EXPECT_EQ(time(CollectiveKind::all_gather, DType::fp32, 1), 0);
  EXPECT_DOUBLE_EQ(library_time(overhead, CollectiveKind::all_gather, DType::fp32, 8, 2, false),
                   4 / 5e8);
}

TEST(HostOverhead, LargeMessagesHaveABandwidthOfTheirOwn) {
  const HostOverhead overhead = measured_profile();
  const auto time = [&](Bytes bytes) {
    return library_time(overhead, CollectiveKind::reduce_scatter, DType::fp32, bytes, 2);
  };

  EXPECT_DOUBLE_EQ(time(1000), 1e-3 + 500 / 1e9);
  EXPECT_DOUBLE_EQ(time(1002), 1e-3 + 3 * 501 / 1e9);
}

TEST(HostOverhead, OfGlooAddsTimeToLargeMessagesOfTheCopiedKindsAlone) {
  constexpr Bytes kLargest = Bytes{32} << 20U;  // of the others
  const HostOverhead overhead = preset(kGlooOverhead);
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    return library_time(overhead, kind, DType::bf16, bytes, 2);
  };

  EXPECT_EQ(time(CollectiveKind::all_gather, kLargest), 0);
  EXPECT_NEAR(time(CollectiveKind::all_gather, kLargest + 1), 56e-3, 1e-3);
  EXPECT_NEAR(time(CollectiveKind::reduce_scatter, kLargest + 1), 48e-3, 1e-3);
  EXPECT_EQ(time(CollectiveKind::all_reduce, kLargest + 1), 0);
}

TEST(HostOverhead, SaysWhatChoosingByAPresetMayCost) {
  EXPECT_THAT(preset_cost(preset(kGlooOverhead)), testing::HasSubstr("10 and 18 % slower"));
  EXPECT_THAT(preset_cost(preset(kCudaOverhead)), testing::HasSubstr("on an H200"));
  EXPECT_EQ(preset_cost(preset(kNoOverhead)), "");
  EXPECT_EQ(preset_cost(measured_profile()), "");
}

TEST(HostOverhead, TakesBytesOfAnotherTypeForAMissingOne) {
  const HostOverhead overhead = measured_profile();
  const auto type = [&](CollectiveKind kind, DType dtype) {
    return library_rate(overhead, kind, dtype)->dtype;
  };

  EXPECT_EQ(type(CollectiveKind::all_gather, DType::bf16), DType::bf16);
  EXPECT_EQ(type(CollectiveKind::all_gather, DType::fp16), DType::bf16);
  EXPECT_EQ(type(CollectiveKind::all_gather, DType::int8), DType::fp32);
  EXPECT_EQ(type(CollectiveKind::all_reduce, DType::bf16), DType::fp32);
  EXPECT_EQ(library_rate(overhead, CollectiveKind::broadcast, DType::fp32), nullptr);
  EXPECT_EQ(library_time(overhead, CollectiveKind::broadcast, DType::fp32, 8, 2), 0);
}

TEST(HostOverhead, OfGpusIsKnownByItsEarlierName) {
  EXPECT_EQ(preset_of(preset("gpu-estimate")), kCudaOverhead);
}

// A gathered tensor's is in that of the modules' hooks.
TEST(HostOverhead, OfAPresetHasATimeForEveryEventButOne) {
  for (const auto name : {kCudaOverhead, kGlooOverhead}) {
    HostOverhead overhead = preset(name);
    EXPECT_EQ(overhead.at(HostEvent::gathered_tensor), 0);
    overhead.at(HostEvent::gathered_tensor) = overhead.at(HostEvent::sub_module_hook);
    for (const Seconds time : overhead.seconds) {
      EXPECT_GT(time, 1e-6);
      EXPECT_LT(time, 1e-2);
    }
  }
}

TEST(HostOverhead, OfGlooIsWhatTwoRanksOfDeepSpeedTook) {
  const HostOverhead overhead = preset(kGlooOverhead);

  EXPECT_DOUBLE_EQ(overhead.at(HostEvent::gradient_hook), 160e-6);
  EXPECT_DOUBLE_EQ(overhead.at(HostEvent::sub_module_hook), 450e-6 / kHooksPerEarlier);
  EXPECT_DOUBLE_EQ(overhead.at(HostEvent::collective), 3e-3);
  EXPECT_DOUBLE_EQ(overhead.at(HostEvent::optimizer_tensor), 200e-6);
  EXPECT_DOUBLE_EQ(overhead.at(HostEvent::pipelined_collective), 600e-6);
}

TEST(HostOverhead, IsKnownByItsNumbers) {
  for (const auto& name : host_overhead_presets()) EXPECT_EQ(preset_of(preset(name)), name);

  HostOverhead mine = preset(kGlooOverhead);
  mine.at(HostEvent::collective) = 1;
  EXPECT_EQ(preset_of(mine), "");
  EXPECT_EQ(host_overhead_preset("default"), std::nullopt);
}

// A journal of an earlier version has the numbers that the preset had then.
TEST(HostOverhead, IsKnownWithoutWhatItsPresetHasNow) {
  HostOverhead earlier = preset(kGlooOverhead);
  earlier.at(HostEvent::micro_step) = 0;
  EXPECT_EQ(preset_of(earlier), kGlooOverhead);
  earlier.at(HostEvent::sub_module_hook) = 450e-6;
  for (const HostEvent event :
       {HostEvent::operator_forward, HostEvent::operator_backward, HostEvent::module_call}) {
    earlier.at(event) = 0;
  }
  EXPECT_EQ(preset_of(earlier), kGlooOverhead);
  earlier.collectives.clear();
  EXPECT_EQ(preset_of(earlier), kGlooOverhead);
  json::object earliest = to_json(earlier);
  earliest.erase("pipelined_collective");
  EXPECT_EQ(preset_of(host_overhead_from_json(earliest)), kGlooOverhead);

  earlier.spread_factor = 1;
  EXPECT_EQ(preset_of(earlier), "");
}

}  // namespace
}  // namespace dstune::host_overhead_test
