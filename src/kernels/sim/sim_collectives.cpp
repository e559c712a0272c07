#include "kernels/sim/sim_collectives.hpp"

namespace dstune::sim {

void SimCollectives::account(CollectiveKind kind, Bytes bytes) {
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const int steps = rounds * (size() - 1);
  sim_->advance(steps * network_.latency + wire_bytes(kind, bytes, size()) / network_.bytes_per_s);
}

std::unique_ptr<Collectives> SimCollectives::do_sub_group(const std::vector<int>& ranks, int own) {
  return std::make_unique<SimCollectives>(*sim_, own, static_cast<int>(ranks.size()), network_);
}

}  // namespace dstune::sim
