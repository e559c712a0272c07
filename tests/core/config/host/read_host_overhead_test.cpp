#include "core/config/host/read_host_overhead.hpp"

#include <cmath>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/input/problems.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_host_overhead_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::write_file;

class ReadHostOverhead : public testing::Test {
 protected:
  std::optional<HostOverhead> read(const std::string& name) {
    return read_host_overhead(name, {"/nowhere", folder_.path()}, "/dstune/host_overhead",
                              problems_);
  }
  void write(const char* name, const char* text) { write_file(folder_ / name, text); }
  Faults faults() { return faults_in(problems_); }

  testing_support::TemporaryDirectory folder_;
  Problems problems_{"config.json"};
};

constexpr const char* kProfile = R"({
  "gradient_hook_us": 55.5, "sub_module_hook_us": 0, "collective_us": 30, "optimizer_tensor_us": 70,
  "synchronization_us": 12, "about": {"made_by": "scripts/tune.sh --calibrate"}
})";

TEST_F(ReadHostOverhead, KnowsItsPresets) {
  EXPECT_EQ(read("none"), HostOverhead{});
  EXPECT_EQ(read("cpu-gloo"), host_overhead_preset("cpu-gloo"));
  EXPECT_EQ(faults(), Faults{});
}

TEST_F(ReadHostOverhead, LeavesTheDefaultToTheBackend) {
  EXPECT_EQ(read("default"), std::nullopt);
  EXPECT_EQ(faults(), Faults{});
}

TEST_F(ReadHostOverhead, ReadsTheMicrosecondsOfAProfile) {
  write("mine.json", kProfile);

  const auto overhead = read("mine.json");

  ASSERT_TRUE(overhead) << faults().size();
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::gradient_hook), 55.5e-6);
  EXPECT_EQ(overhead->at(HostEvent::sub_module_hook), 0);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::synchronization), 12e-6);
}

constexpr const char* kMeasured = R"({
  "gradient_hook_us": 26.8, "sub_module_hook_us": 134, "collective_us": 67, "optimizer_tensor_us": 48,
  "synchronization_us": 113,
  "uncertainty": {"gradient_hook_us": 4.4, "sub_module_hook_us": 17, "collective_us": 70,
                  "optimizer_tensor_us": 8, "synchronization_us": 50},
  "collectives": {
    "all_gather": {"fp32": {"latency_us": 300, "latency_uncertainty_us": 40,
                            "bus_bandwidth_gb_per_s": 0.5,
                            "bus_bandwidth_uncertainty_gb_per_s": 0.05},
                   "bf16": null},
    "reduce": null},
  "measured_on": {"host": "node1", "processor": "Intel(R) Xeon(R) Processor", "ranks": 2,
                  "deepspeed": "0.19.8", "torch": "2.15.0", "transformers": null,
                  "backend": "gloo", "date": "2026-11-23", "python": "3.11"},
  "about": {"cases": 60}})";

TEST_F(ReadHostOverhead, PricesPipelinedCollectivesAsOthersUnlessItSays) {
  write("mine.json", kMeasured);
  const auto alike = read("mine.json").value();
  std::string own = kMeasured;
  own.replace(own.find("\"synchronization_us\""), 0, "\"pipelined_collective_us\": 70, ");
  write("half.json", own.c_str());
  own.replace(own.find("\"gradient_hook_us\": 4.4"), 0, "\"pipelined_collective_us\": 9, ");
  write("own.json", own.c_str());

  EXPECT_DOUBLE_EQ(alike.at(HostEvent::pipelined_collective), 67e-6 + 300e-6);
  EXPECT_DOUBLE_EQ(alike.uncertainty_of(HostEvent::pipelined_collective), std::hypot(70e-6, 40e-6));
  const auto known = read("own.json").value();
  EXPECT_DOUBLE_EQ(known.at(HostEvent::pipelined_collective), 70e-6);
  EXPECT_DOUBLE_EQ(known.uncertainty_of(HostEvent::pipelined_collective), 9e-6);
  EXPECT_EQ(read("half.json"), std::nullopt) << "a number without its uncertainty";
  EXPECT_THAT(faults(),
              testing::ElementsAre(testing::HasSubstr("/uncertainty/pipelined_collective_us")));
}

TEST_F(ReadHostOverhead, LeavesGatheredTensorsToTheHooksUnlessItSays) {
  write("mine.json", kMeasured);
  std::string own = kMeasured;
  own.replace(own.find("\"synchronization_us\""), 0, "\"gathered_tensor_us\": 214, ");
  write("half.json", own.c_str());
  own.replace(own.find("\"gradient_hook_us\": 4.4"), 0, "\"gathered_tensor_us\": 53, ");
  write("own.json", own.c_str());

  EXPECT_EQ(read("mine.json").value().at(HostEvent::gathered_tensor), 0);
  const auto known = read("own.json").value();
  EXPECT_DOUBLE_EQ(known.at(HostEvent::gathered_tensor), 214e-6);
  EXPECT_DOUBLE_EQ(known.uncertainty_of(HostEvent::gathered_tensor), 53e-6);
  EXPECT_EQ(read("half.json"), std::nullopt) << "a number without its uncertainty";
  EXPECT_THAT(faults(),
              testing::ElementsAre(testing::HasSubstr("/uncertainty/gathered_tensor_us")));
}

TEST_F(ReadHostOverhead, TakesPlainNumbersToBeHalfToTwice) {
  write("mine.json", kProfile);

  const auto overhead = read("mine.json").value();

  EXPECT_EQ(overhead.spread_factor, 2);
  EXPECT_EQ(overhead.uncertainty_of(HostEvent::collective), 0);
  EXPECT_EQ(overhead.origin, folder_ / "mine.json");
}

TEST_F(ReadHostOverhead, ReadsAllThatWasMeasured) {
  write("mine.json", kMeasured);

  const auto overhead = read("mine.json");

  EXPECT_EQ(faults(), Faults{});
  ASSERT_TRUE(overhead);
  EXPECT_DOUBLE_EQ(overhead->uncertainty_of(HostEvent::gradient_hook), 4.4e-6);
  EXPECT_DOUBLE_EQ(overhead->uncertainty_of(HostEvent::synchronization), 50e-6);
  EXPECT_EQ(overhead->spread_factor, 1);
  ASSERT_EQ(overhead->collectives.size(), 1U);
  const LibraryRate& rate = overhead->collectives.front();
  EXPECT_EQ(rate.kind, CollectiveKind::all_gather);
  EXPECT_EQ(rate.dtype, DType::fp32);
  EXPECT_DOUBLE_EQ(rate.latency, 300e-6);
  EXPECT_DOUBLE_EQ(rate.latency_uncertainty, 40e-6);
  EXPECT_DOUBLE_EQ(rate.bus_bytes_per_s, 0.5e9);
  EXPECT_DOUBLE_EQ(rate.bus_bytes_per_s_uncertainty, 0.05e9);
  EXPECT_EQ(overhead->origin, std::string(folder_ / "mine.json") +
                                  ", measured on node1 (Intel(R) Xeon(R) Processor), 2 ranks, "
                                  "gloo, DeepSpeed 0.19.8, torch 2.15.0, 2026-11-23");
}

TEST_F(ReadHostOverhead, ReadsLargeMessagesAndProductsWhereThereAreSome) {
  std::string text = kMeasured;
  text.replace(text.find("\"bus_bandwidth_uncertainty_gb_per_s\": 0.05"), 0,
               R"("large": {"above_bytes": 33554432, "bus_bandwidth_gb_per_s": 0.25,
                            "bus_bandwidth_uncertainty_gb_per_s": 0.01}, )");
  text.replace(text.find("\"measured_on\""), 0,
               R"("products": {"fp32": {"threads": 2, "gflop_per_s": 30.5}, "bf16": null}, )");
  write("mine.json", text.c_str());

  const auto overhead = read("mine.json");

  EXPECT_EQ(faults(), Faults{});
  ASSERT_TRUE(overhead);
  const LibraryRate& rate = overhead->collectives.front();
  EXPECT_EQ(rate.large_above, Bytes{32} << 20U);
  EXPECT_DOUBLE_EQ(rate.large_bus_bytes_per_s, 0.25e9);
  EXPECT_DOUBLE_EQ(rate.large_bus_bytes_per_s_uncertainty, 0.01e9);
  EXPECT_DOUBLE_EQ(rate.bus_bytes_per_s, 0.5e9);
  EXPECT_EQ(overhead->products, (std::vector<ProductRate>{{DType::fp32, 2, 30.5e9}}));
}

TEST_F(ReadHostOverhead, NamesEveryFaultOfLargeMessagesAndProducts) {
  write("bad.json", R"({
    "gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": 1, "optimizer_tensor_us": 1,
    "synchronization_us": 1,
    "collectives": {"all_gather": {"fp32": {"latency_us": 1, "bus_bandwidth_gb_per_s": 1,
                    "large": {"above_bytes": 0}}}},
    "products": {"int8": {}, "fp32": {"threads": 1}}})");

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string at = std::string(folder_ / "bad.json") + "#";
  EXPECT_THAT(faults(),
              testing::IsSupersetOf(
                  {at + "/products/fp32/gflop_per_s  is missing; accepted: a number of 10^9 "
                        "operations per second",
                   at + "/collectives/all_gather/fp32/large/bus_bandwidth_gb_per_s  is missing; "
                        "accepted: a number of 10^9 bytes per second"}));
  EXPECT_THAT(faults(), testing::Contains(testing::HasSubstr("/products/int8  is unknown")));
  EXPECT_THAT(faults(), testing::Contains(testing::HasSubstr("/large/above_bytes  is 0")));
}

std::string with(std::string_view more) {
  std::string profile = kMeasured;
  return profile.replace(profile.find("\"measured_on\""), 0, more);
}

TEST_F(ReadHostOverhead, ReadsWhatEagerPytorchTakesWhereItIsThere) {
  write("without.json", kMeasured);
  std::string own = with(R"("products": {"bf16": {"threads": 1, "gflop_per_s": 800,
                                                  "latency_us": 32, "result_ns_per_kib": 512}},
      "attention": {"fp32": null,
                    "bf16": {"threads": 1, "forward": {"row_us": 0.1, "gflop_per_s": 260},
                             "backward": {"row_us": 2.7, "gflop_per_s": 900},
                             "with_dropout": {"forward": {"row_us": 0.5, "gflop_per_s": 4},
                                              "backward": {"row_us": 0.7, "gflop_per_s": 12}}}},
      "operations": {"dropout": {"bf16": {"threads": 2, "forward_ns": 7.5, "backward_ns": 0.5}},
                     "rotary": null},
      "operator_forward_us": 2.25, "operator_backward_us": 4, "module_call_us": 24,
      "micro_step_us": 890, )");
  own.replace(own.find("\"gradient_hook_us\": 4.4"), 0,
              R"("operator_forward_us": 0.5, "operator_backward_us": 1, "module_call_us": 2,
                "micro_step_us": 80, )");
  write("own.json", own.c_str());

  const auto without = read("without.json").value();
  EXPECT_EQ(without.at(HostEvent::module_call), 0);
  EXPECT_TRUE(without.attention.empty());
  const auto overhead = read("own.json");
  EXPECT_EQ(faults(), Faults{});
  ASSERT_TRUE(overhead);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::operator_forward), 2.25e-6);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::operator_backward), 4e-6);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::module_call), 24e-6);
  EXPECT_DOUBLE_EQ(overhead->uncertainty_of(HostEvent::module_call), 2e-6);
  EXPECT_EQ(without.at(HostEvent::micro_step), 0);
  EXPECT_DOUBLE_EQ(overhead->at(HostEvent::micro_step), 890e-6);
  ASSERT_EQ(overhead->products.size(), 1U);
  EXPECT_DOUBLE_EQ(overhead->products.front().latency, 32e-6);
  EXPECT_DOUBLE_EQ(overhead->products.front().result_byte, 0.5e-9);
  ASSERT_EQ(overhead->attention.size(), 2U);
  const AttentionRate& rate = overhead->attention.front();
  EXPECT_EQ(rate.dtype, DType::bf16);
  EXPECT_EQ(rate.threads, 1);
  EXPECT_DOUBLE_EQ(rate.forward.row, 0.1e-6);
  EXPECT_DOUBLE_EQ(rate.forward.flops_per_s, 260e9);
  EXPECT_DOUBLE_EQ(rate.backward.row, 2.7e-6);
  EXPECT_DOUBLE_EQ(rate.backward.flops_per_s, 900e9);
  EXPECT_FALSE(rate.has_dropout);
  EXPECT_EQ(overhead->attention.back(),
            (AttentionRate{DType::bf16, 1, {1e-6 * 0.5, 4e9}, {1e-6 * 0.7, 12e9}, true}));
  ASSERT_EQ(overhead->operations.size(), 1U);
  EXPECT_EQ(overhead->operations.front(),
            (OperationRate{TimedOperation::dropout, DType::bf16, 2, 1e-9 * 7.5, 1e-9 * 0.5}));
}

TEST_F(ReadHostOverhead, ReadsEveryOperationByItsName) {
  std::string all;
  for (std::size_t i = 0; i < kTimedOperations; ++i) {
    all += concat(i == 0 ? "" : ", ", in_quotes(name_of(static_cast<TimedOperation>(i))),
                  R"(: {"fp32": {"threads": 1, "forward_ns": 1, "backward_ns": )", i, "}}");
  }
  write("all.json", with(concat(R"("operations": {)", all, "}, ")).c_str());

  const auto overhead = read("all.json");
  EXPECT_EQ(faults(), Faults{});
  ASSERT_TRUE(overhead);
  ASSERT_EQ(overhead->operations.size(), kTimedOperations);
  for (std::size_t i = 0; i < kTimedOperations; ++i) {
    EXPECT_EQ(overhead->operations[i].operation, static_cast<TimedOperation>(i));
    EXPECT_DOUBLE_EQ(overhead->operations[i].backward, 1e-9 * static_cast<double>(i));
  }
}

TEST_F(ReadHostOverhead, NamesEveryFaultOfWhatEagerPytorchTakes) {
  write("bad.json", with(R"("products": {"fp32": {"threads": 1, "gflop_per_s": 9,
                                                  "latency_us": -1, "result_ns_per_kib": -2}},
      "attention": {"fp32": {"threads": 1, "forward": {"row_us": 1},
                             "with_dropout": {"forward": {"row_us": 1, "gflop_per_s": 1}}}},
      "operations": {"gelu": {"fp32": {"forward_ns": -1}}, "dropuot": {}},
      "operator_forward_us": 2, )")
                        .c_str());

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string at = std::string(folder_ / "bad.json") + "#";
  EXPECT_THAT(
      faults(),
      testing::IsSupersetOf(
          {testing::HasSubstr(at + "/products/fp32/latency_us  is -1"),
           testing::HasSubstr(at + "/products/fp32/result_ns_per_kib  is -2"),
           testing::HasSubstr(at + "/attention/fp32/forward/gflop_per_s  is missing"),
           testing::HasSubstr(at + "/attention/fp32/backward/row_us  is missing"),
           testing::HasSubstr(at + "/attention/fp32/with_dropout/backward/row_us  is missing"),
           testing::HasSubstr(at + "/operations/gelu/fp32/threads  is missing"),
           testing::HasSubstr(at + "/operations/gelu/fp32/forward_ns  is -1"),
           testing::HasSubstr(at + "/operations/gelu/fp32/backward_ns  is missing"),
           testing::HasSubstr(at + "/operations/dropuot  is unknown"),
           testing::HasSubstr(at + "/uncertainty/operator_forward_us  is missing")}));
}

TEST_F(ReadHostOverhead, WantsEveryUncertaintyOrNone) {
  write("bad.json", R"({
    "gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": 1, "optimizer_tensor_us": 1,
    "synchronization_us": 1,
    "uncertainty": {"gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": 1,
                    "optimizer_tensor_us": 1},
    "collectives": {"all_gather": {"fp32": {"latency_us": 1, "bus_bandwidth_gb_per_s": 1,
                                            "latency_uncertainty_us": 1}}}})");

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string file = folder_ / "bad.json";
  EXPECT_EQ(faults(),
            (Faults{file + "#/collectives/all_gather/fp32/bus_bandwidth_uncertainty_gb_per_s  is "
                           "missing; accepted: a number of 10^9 bytes per second",
                    file + "#/uncertainty/synchronization_us  is missing; accepted: a number of "
                           "microseconds >= 0"}));
}

TEST_F(ReadHostOverhead, NamesEveryFaultOfCollectives) {
  write("bad.json", R"({
    "gradient_hook_us": 1, "sub_module_hook_us": 1, "collective_us": 1, "optimizer_tensor_us": 1,
    "synchronization_us": 1,
    "collectives": {"all_gathr": {}, "reduce": {"fp23": {}, "fp32": [], "bf16": {
                                     "latency_us": -1, "bus_bandwidth_gb_per_s": 0}}},
    "measured_on": {"ranks": 0}})");

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string at = std::string(folder_ / "bad.json") + "#";
  EXPECT_EQ(
      faults(),
      (Faults{at + "/collectives/all_gathr  is unknown; did you mean \"all_gather\"?",
              at + "/collectives/reduce/fp23  is unknown; did you mean \"fp32\"?",
              at + "/collectives/reduce/fp32  is an empty list; accepted: an object or null",
              at + "/collectives/reduce/bf16/latency_us  is -1; accepted: a number from 0 to 1e+07",
              at + "/collectives/reduce/bf16/bus_bandwidth_gb_per_s  is 0; accepted: a number from "
                   "1e-06 to 1e+06",
              at + "/measured_on/ranks  is 0; accepted: an integer from 1 to 1000000 or null"}));
}

TEST_F(ReadHostOverhead, SaysWhatItKnowsOfAnUnknownName) {
  EXPECT_EQ(read("defualt"), std::nullopt);
  EXPECT_EQ(faults(),
            Faults{"/dstune/host_overhead  is \"defualt\", neither a preset nor a file; did "
                   "you mean \"default\"? accepted: \"default\", \"cuda\", "
                   "\"cpu-gloo\", \"none\", or the path of a profile"});
}

TEST_F(ReadHostOverhead, ReportsEveryFaultOfAProfile) {
  write("bad.json", R"({"gradient_hook_us": -1, "sub_module_hook": 3, "sub_module_hook_us": "fast",
                        "collective_us": 1, "optimizer_tensor_us": 1})");

  EXPECT_EQ(read("bad.json"), std::nullopt);
  const std::string file = folder_ / "bad.json";
  EXPECT_EQ(faults(),
            (Faults{file + "#/gradient_hook_us  is -1; accepted: a number from 0 to 100000",
                    file + "#/sub_module_hook  is unknown; did you mean \"sub_module_hook_us\"?",
                    file + "#/sub_module_hook_us  is \"fast\"; accepted: a number from 0 to 100000",
                    file + "#/synchronization_us  is missing; accepted: a number of microseconds "
                           ">= 0"}));
}

TEST_F(ReadHostOverhead, RejectsAFileWithoutAnObject) {
  write("list.json", "[1, 2]");

  EXPECT_EQ(read("list.json"), std::nullopt);
  EXPECT_EQ(faults().size(), 1U);
}

}  // namespace
}  // namespace dstune::read_host_overhead_test
