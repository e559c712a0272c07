// A ledger with an entry of every sort.
#pragma once

#include <limits>

#include "core/device/ledger/ledger.hpp"

namespace dstune::test {

/// Numbers that do not survive a careless text form.
inline Ledger make_ledger() {
  Ledger ledger;
  ledger.add({.purpose = Purpose::gradients,
              .kind = CollectiveKind::reduce_scatter,
              .dtype = DType::bf16,
              .stream = Stream::reduction,
              .ranks = 3,
              .elements = std::numeric_limits<std::uint64_t>::max(),
              .bytes = 1'000'000'000'007,
              .exposed = 0.1,
              .overlapped = 1.0 / 3,
              .added = 0.7 / 3});
  ledger.add({.purpose = Purpose::parameters,
              .kind = CollectiveKind::all_gather,
              .dtype = DType::fp16,
              .stream = Stream::gather,
              .ranks = 3,
              .elements = 5,
              .bytes = 10,
              .pipelined = 1});
  ledger.add_pass(MemoryPass::master_gradient, 7, 9);
  ledger.add_pass(MemoryPass::update, 16, 12);
  ledger.add_sync(HostSync::timer, 1e-9);
  ledger.add_host_pass(MemoryPass::update, 16, 12, 1e-3 / 3);
  ledger.add_transfer({.bytes = 4});
  ledger.add_transfer({.transfer = Transfer::host_to_device,
                       .purpose = TransferPurpose::update,
                       .tier = Tier::pinned,
                       .is_blocking = false,
                       .stream = Stream::reduction,
                       .bytes = 8});
  ledger.add_host(HostEvent::gradient_hook, 60e-6);
  ledger.add_idle(HostEvent::gradient_hook, 4e-5 / 0.9999);
  ledger.note_live(42);
  return ledger;
}

}  // namespace dstune::test
