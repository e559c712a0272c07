// How rank 0 ends the run on the workers, with a pool and without.
#include <algorithm>

#include "mpi/pool/mpi_worker_pool.hpp"

namespace dstune {

bool MpiWorkerPool::stop() {
  const auto& workers = roster_.all();
  const auto alive = [](const WorkerEntry& worker) { return worker.state != WorkerState::lost; };
  for (auto& running : running_) {
    if (!running.outcome) end_early(running, Failed{FailureKind::error, "the run was stopped"});
  }
  for (const auto& worker : workers) {
    if (alive(worker)) mailbox_.send(worker.info.rank, MessageKind::stop);
  }
  const auto bye = [&](const WorkerEntry& worker) {
    return said_bye_.at(static_cast<std::size_t>(worker.info.rank));
  };
  wait_until(options_.abort_grace, [&] {
    return std::all_of(workers.begin(), workers.end(),
                       [&](const WorkerEntry& worker) { return bye(worker) || !alive(worker); });
  });
  const bool finalize = std::all_of(workers.begin(), workers.end(), bye);
  for (const auto& worker : workers) {
    if (alive(worker)) {
      mailbox_.send(worker.info.rank, MessageKind::leave, {{"finalize", finalize}});
    }
  }
  return finalize;
}

void broadcast_stop(const Communicator& world) {
  Mailbox mailbox(world);
  for (int rank = 1; rank < world.size(); ++rank) {
    mailbox.send(rank, MessageKind::leave, {{"finalize", true}});
  }
}

}  // namespace dstune
