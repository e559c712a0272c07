#include "core/device/dry/dry_collectives.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/base/text.hpp"

namespace dstune {

DryCollectives::DryCollectives(Device& device, int rank, int size)
    : Collectives(device, rank, size) {
  if (rank < 0 || rank >= size) {
    throw std::invalid_argument(concat("DryCollectives: rank ", rank, " of ", size));
  }
}

void DryCollectives::account(CollectiveKind kind, Bytes bytes) {
  (void)kind;
  (void)bytes;
}

void DryCollectives::touch(CollectiveKind kind, Tensor in, Tensor out) {
  (void)kind;
  (void)in;
  (void)out;
}

void DryCollectives::run(CollectiveKind kind, Tensor in, Tensor out) {
  touch(kind, in, out);
  account(kind, std::max(in.size(), out.size()));
}

void DryCollectives::do_all_reduce(Tensor inout, ReduceOp /*op*/) {
  run(CollectiveKind::all_reduce, inout, inout);
}

void DryCollectives::do_reduce(Tensor inout, ReduceOp /*op*/, int /*root*/) {
  run(CollectiveKind::reduce, inout, inout);
}

void DryCollectives::do_reduce_scatter(Tensor in, Tensor out, ReduceOp /*op*/) {
  run(CollectiveKind::reduce_scatter, in, out);
}

void DryCollectives::do_all_gather(Tensor in, Tensor out) {
  run(CollectiveKind::all_gather, in, out);
}

void DryCollectives::do_broadcast(Tensor inout, int /*root*/) {
  run(CollectiveKind::broadcast, inout, inout);
}

void DryCollectives::do_all_to_all(Tensor in, Tensor out) {
  run(CollectiveKind::all_to_all, in, out);
}

std::unique_ptr<Collectives> DryCollectives::do_sub_group(const std::vector<int>& ranks, int own) {
  return std::make_unique<DryCollectives>(device(), own, static_cast<int>(ranks.size()));
}

}  // namespace dstune
