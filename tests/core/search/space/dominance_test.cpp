#include "core/search/space/dominance.hpp"

#include <gtest/gtest.h>

namespace dstune::dominance_test {
namespace {

Measured dry(Bytes peak, Stream stream = Stream::reduction) {
  Measured measured;
  measured.peak_memory.total = peak;
  CollectiveLine line;
  line.stream = stream;
  line.ranks = 2;
  line.elements = 10;
  line.bytes = 40;
  measured.ledger.add(line);
  measured.ledger.add_pass(MemoryPass::norm, 10, 0);
  measured.ledger.add_sync(HostSync::timer, 0);
  measured.ledger.add_host(HostEvent::gradient_hook, 0);
  return measured;
}

TEST(IsDominated, NeedsMoreOfSomethingAndLessOfNothing) {
  EXPECT_TRUE(is_dominated(dry(11), dry(10)));
  EXPECT_FALSE(is_dominated(dry(10), dry(11)));
  EXPECT_FALSE(is_dominated(dry(10), dry(10))) << "equal ones would throw each other out";
}

TEST(IsDominated, LooksAtEverythingThatIsCounted) {
  const Measured base = dry(11);
  Measured calls = dry(10);
  calls.ledger.add({.ranks = 2}, 1);
  Measured pass = dry(10);
  pass.ledger.add_pass(MemoryPass::norm, 1, 0);
  Measured bytes = dry(10);
  bytes.ledger.repeat(bytes.ledger.since(dry(10).ledger), 1);
  Measured sync = dry(10);
  sync.ledger.add_sync(HostSync::norm, 0);
  Measured transfer = dry(10);
  transfer.ledger.add_transfer(Transfer::device_to_host, 4);
  Measured host = dry(10);
  host.ledger.add_host(HostEvent::gradient_hook, 0);

  EXPECT_TRUE(is_dominated(base, bytes));
  for (const Measured* other : {&calls, &pass, &sync, &transfer, &host}) {
    EXPECT_FALSE(is_dominated(base, *other));
  }
}

TEST(IsDominated, WhatRunsBesideTheComputationIsWorthMore) {
  EXPECT_FALSE(is_dominated(dry(11, Stream::reduction), dry(10, Stream::compute)));
  EXPECT_TRUE(is_dominated(dry(10, Stream::compute), dry(10, Stream::reduction)));
}

}  // namespace
}  // namespace dstune::dominance_test
