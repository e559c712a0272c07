#include "core/train/dry_collectives.hpp"

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

void DryCollectives::do_all_reduce(Tensor inout, ReduceOp /*op*/, Stream /*stream*/) {
  account(CollectiveKind::all_reduce, inout.size());
}

void DryCollectives::do_reduce(Tensor inout, ReduceOp /*op*/, int /*root*/, Stream /*stream*/) {
  account(CollectiveKind::reduce, inout.size());
}

void DryCollectives::do_reduce_scatter(Tensor in, Tensor /*out*/, ReduceOp /*op*/,
                                       Stream /*stream*/) {
  account(CollectiveKind::reduce_scatter, in.size());
}

void DryCollectives::do_all_gather(Tensor /*in*/, Tensor out, Stream /*stream*/) {
  account(CollectiveKind::all_gather, out.size());
}

void DryCollectives::do_broadcast(Tensor inout, int /*root*/, Stream /*stream*/) {
  account(CollectiveKind::broadcast, inout.size());
}

void DryCollectives::do_all_to_all(Tensor in, Tensor /*out*/, Stream /*stream*/) {
  account(CollectiveKind::all_to_all, in.size());
}

double DryCollectives::do_all_reduce_scalar(double value, ReduceOp /*op*/) {
  account(CollectiveKind::all_reduce, sizeof(float));
  return value;
}

std::unique_ptr<Collectives> DryCollectives::do_sub_group(const std::vector<int>& ranks, int own) {
  return std::make_unique<DryCollectives>(device(), own, static_cast<int>(ranks.size()));
}

}  // namespace dstune
