#include "core/device/ledger/ledger.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/make_ledger.hpp"

namespace dstune::ledger_test {
namespace {

CollectiveLine call(CollectiveKind kind, int ranks, std::uint64_t elements) {
  CollectiveLine line;
  line.kind = kind;
  line.ranks = ranks;
  line.elements = elements;
  line.bytes = 4 * elements;
  return line;
}

TEST(Ledger, CallsOfOneKindAreOneLine) {
  Ledger ledger;

  ledger.add(call(CollectiveKind::all_reduce, 4, 100));
  ledger.add(call(CollectiveKind::all_reduce, 4, 20));

  ASSERT_EQ(ledger.collectives().size(), 1U);
  const CollectiveLine& line = ledger.collectives().front();
  EXPECT_EQ(line.calls, 2U);
  EXPECT_EQ(line.elements, 120U);
  EXPECT_EQ(line.bytes, 480U);
  EXPECT_EQ(line.wire_bytes, 2 * 480 * 3 / 4.0);
}

TEST(Ledger, GroupsAndPurposesHaveLinesOfTheirOwn) {
  Ledger ledger;
  CollectiveLine norm = call(CollectiveKind::all_reduce, 4, 1);
  norm.purpose = Purpose::norm;

  ledger.add(call(CollectiveKind::all_reduce, 4, 1));
  ledger.add(call(CollectiveKind::all_reduce, 2, 1));
  ledger.add(norm);

  EXPECT_EQ(ledger.collectives().size(), 3U);
  EXPECT_EQ(ledger.counts()[static_cast<std::size_t>(CollectiveKind::all_reduce)],
            (CollectiveCount{3, 3, 12}));
}

TEST(Ledger, PassesWaitsAndTransfersAreSummed) {
  Ledger ledger;

  ledger.add_pass(MemoryPass::unscale, 8, 4);
  ledger.add_pass(MemoryPass::unscale, 2, 1);
  ledger.add_sync(HostSync::overflow, 0.5);
  ledger.add_sync(HostSync::overflow, 0.25);
  const auto add = [&](Tier tier, Bytes bytes) {
    ledger.add_transfer({.transfer = Transfer::nvme_read, .tier = tier, .bytes = bytes});
  };
  add(Tier::pinned, 3);
  add(Tier::pageable, 8);
  add(Tier::pinned, 4);
  ledger.add_host_pass(MemoryPass::update, 16, 12, 0.5);
  ledger.add_host_pass(MemoryPass::update, 16, 12, 0.25);

  EXPECT_EQ(ledger.passes(), (std::vector<PassLine>{{MemoryPass::unscale, 2, 10, 5}}));
  EXPECT_EQ(ledger.syncs(), (std::vector<SyncLine>{{HostSync::overflow, 2, 0.75}}));
  const TransferLine pinned{
      .transfer = Transfer::nvme_read, .tier = Tier::pinned, .calls = 2, .bytes = 7};
  const TransferLine pageable{
      .transfer = Transfer::nvme_read, .tier = Tier::pageable, .calls = 1, .bytes = 8};
  EXPECT_EQ(ledger.transfers(), (std::vector<TransferLine>{pinned, pageable}));
  EXPECT_EQ(ledger.host_passes(),
            (std::vector<HostPassLine>{{MemoryPass::update, 2, 32, 24, 0.75}}));
}

TEST(Ledger, HostEventsAreCountedWithTheTimeTheyStandFor) {
  Ledger ledger;

  ledger.add_host(HostEvent::gradient_hook, 0.5);
  ledger.add_host(HostEvent::collective, 0);
  ledger.add_host(HostEvent::gradient_hook, 0.25);

  EXPECT_EQ(ledger.host(), (std::vector<HostLine>{{HostEvent::gradient_hook, 2, 0.75},
                                                  {HostEvent::collective, 1, 0}}));
  EXPECT_EQ(ledger.host_time(), 0.75);
}

TEST(Ledger, LiveElementsKeepTheirPeak) {
  Ledger ledger;

  ledger.note_live(10);
  ledger.note_live(30);
  ledger.note_live(20);

  EXPECT_EQ(ledger.peak_live_elements(), 30);
}

TEST(Ledger, SameWorkForgetsTheTimesOnly) {
  const Ledger one = test::make_ledger();
  Ledger slower = test::make_ledger();
  Ledger busier = test::make_ledger();

  slower.add_sync(HostSync::timer, 1);
  slower.add_host(HostEvent::collective, 1);
  slower.add_idle(HostEvent::collective, 1);
  slower.add_library_wait(1);
  Ledger reference = one;
  reference.add_sync(HostSync::timer, 0);
  reference.add_host(HostEvent::collective, 0);
  busier.add_pass(MemoryPass::update, 1, 0);

  EXPECT_TRUE(slower.same_work(reference));
  EXPECT_FALSE(slower == reference);
  EXPECT_FALSE(busier.same_work(one));
}

TEST(Ledger, ReadsBackToTheSameBits) {
  Ledger ledger = test::make_ledger();
  EXPECT_FALSE(ledger.to_json().contains("product_wait_s"));
  EXPECT_FALSE(ledger.to_json().contains("stand_ins"));
  ledger.add_library_wait(1.0 / 3);
  ledger.note_stand_in("attention: another kernel");
  for (const DType dtype :
       {DType::fp32, DType::bf16, DType::fp16, DType::int8, DType::fp64, DType::uint8}) {
    CollectiveLine line = call(CollectiveKind::all_reduce, 4, 1);
    line.dtype = dtype;
    ledger.add(line);
  }

  const std::string text = to_json_text(ledger.to_json(), 0);

  EXPECT_EQ(Ledger::from_json(parse_json(text).as_object()), ledger);
}

TEST(Ledger, ReadsWhatEarlierVersionsWrote) {
  Ledger ledger = test::make_ledger();
  json::object object = ledger.to_json();

  object.at("host").as_array()[0].as_object().erase("idle_s");

  EXPECT_TRUE(Ledger::from_json(object).same_work(ledger));
  EXPECT_EQ(Ledger::from_json(object).idle_time(), 0);
}

TEST(Ledger, ReadsTheHooksThatEarlierVersionsCounted) {
  Ledger ledger;
  ledger.add_host(HostEvent::sub_module_hook, 0.25, 62);
  json::object object = ledger.to_json();

  object.at("host").as_array()[0].as_object()["event"] = "module_hook";

  EXPECT_EQ(Ledger::from_json(object), ledger);
}

TEST(Ledger, UnknownNamesAreNoLedger) {
  json::object object = test::make_ledger().to_json();

  object.at("passes").as_array()[0].as_object()["pass"] = "detour";

  EXPECT_THROW(Ledger::from_json(object), std::invalid_argument);
}

TEST(Ledger, IntegersAreNoTypeOfAMessage) {
  json::object object = test::make_ledger().to_json();

  object.at("collectives").as_array()[0].as_object()["dtype"] = "int64";

  EXPECT_THROW(Ledger::from_json(object), std::invalid_argument);
}

TEST(Ledger, NoMoreCallsArePipelinedThanThereAre) {
  json::object object = test::make_ledger().to_json();

  object.at("collectives").as_array()[1].as_object()["pipelined_calls"] = 2;

  EXPECT_THROW(Ledger::from_json(object), std::invalid_argument);
}

/// A line of every kind.
void work(Ledger& of) {
  of.add_pass(MemoryPass::update, 3, 2);
  of.add_host(HostEvent::gradient_hook, 0.5);
  of.add_idle(HostEvent::gradient_hook, 0.25);
  of.add_library_wait(0.125);
  of.add_host_pass(MemoryPass::unscale, 4, 4, 0.5);
  of.add_transfer({.bytes = 4});
  of.add_sync(HostSync::norm, 0.25);
  of.add({.purpose = Purpose::gradients, .ranks = 4, .elements = 8, .bytes = 16, .pipelined = 1});
}

TEST(Ledger, RepeatsWhatCameSinceAnEarlierState) {
  Ledger once;
  once.add_pass(MemoryPass::update, 7, 5);
  Ledger ledger = once;
  Ledger expected = once;
  for (int i = 0; i < 5; ++i) work(expected);

  work(ledger);
  ledger.repeat(ledger.since(once), 4);

  EXPECT_EQ(ledger, expected);
}

TEST(Ledger, CountsEachAsOftenAsItIsTold) {
  Ledger expected;
  for (int i = 0; i < 5; ++i) work(expected);
  Ledger ledger;

  EXPECT_EQ(ledger.count_each(5), 1U);
  work(ledger);

  EXPECT_EQ(ledger.count_each(1), 5U);
  EXPECT_EQ(ledger, expected);
}

TEST(Ledger, SumsOfWhatCountsOftenStayWithinTheirRange) {
  Ledger ledger;
  ledger.add_pass(MemoryPass::update, 5, 1);
  ledger.count_each(std::numeric_limits<std::uint64_t>::max() / 2);

  ledger.add_pass(MemoryPass::update, 3, 0);

  EXPECT_EQ(ledger.passes().front().read, std::numeric_limits<Bytes>::max());
  EXPECT_EQ(ledger.passes().front().written, 1U);
}

TEST(Ledger, RepeatedSumsStayWithinTheirRange) {
  Ledger ledger;
  ledger.add_pass(MemoryPass::update, 3, 0);

  ledger.repeat(ledger.since({}), std::numeric_limits<std::uint64_t>::max() / 2);

  EXPECT_EQ(ledger.passes().front().read, std::numeric_limits<Bytes>::max());
  EXPECT_EQ(ledger.passes().front().written, 0U);
}

TEST(Ledger, ClearForgetsEverything) {
  Ledger ledger = test::make_ledger();

  ledger.clear();

  EXPECT_EQ(ledger, Ledger());
}

TEST(LedgerJson, ReadsTransfersOfEarlierVersionsAsNumbers) {
  Ledger ledger;
  ledger.add_transfer({.bytes = 4});
  json::object object = ledger.to_json();
  json::object& line = object["transfers"].as_array().at(0).as_object();
  for (const char* key : {"purpose", "tier", "blocking", "stream"}) line.erase(key);

  EXPECT_EQ(Ledger::from_json(object), ledger);
}

}  // namespace
}  // namespace dstune::ledger_test
