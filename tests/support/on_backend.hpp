// An experiment's ranks as threads on the backend under test.
#pragma once

#include <memory>

#include "core/experiment/experiment.hpp"
#include "tests/support/test_backend.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::test {

/// Calls `run(rank, device, collectives, group)` on a thread for each rank of `experiment`.
template <class Run>
void run_on_backend(const Experiment& experiment, const Run& run) {
  run_on_ranks(experiment.ranks, [&](int rank, ThreadTeam& team) {
    const auto backend = make_test_backend(rank);
    Device& device =
        backend->device({.memory_limit = experiment.settings.memory_limit, .threads = 0});
    ThreadGroup group(team, rank);
    const auto collectives = backend->collectives(
        group, [&](Device& on) { return std::make_unique<ThreadCollectives>(on, team, rank); });
    run(rank, device, *collectives, group);
  });
}

}  // namespace dstune::test
