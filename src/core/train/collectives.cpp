#include "core/train/collectives.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

CollectiveLine line_for(CollectiveKind kind, Purpose purpose, Tensor whole, Stream stream) {
  CollectiveLine line;
  line.purpose = purpose;
  line.kind = kind;
  line.dtype = whole.dtype;
  line.stream = stream;
  line.elements = static_cast<std::uint64_t>(whole.numel);
  line.bytes = whole.size();
  return line;
}

}  // namespace

template <class Call>
Seconds Collectives::counted(CollectiveLine line, Call call) {
  const bool launches = !coalesces_ || !std::exchange(has_launched_, true);
  if (launches && line.purpose != Purpose::other) device_->host_event(HostEvent::collective);
  const Seconds begin = device_->now();
  call();
  line.ranks = size_;
  line.exposed = device_->now() - begin;
  device_->ledger().add(line, launches ? 1 : 0);
  return line.exposed;
}

void Collectives::all_reduce(Tensor inout, ReduceOp op, Purpose purpose, Stream stream) {
  counted(line_for(CollectiveKind::all_reduce, purpose, inout, stream),
          [&] { do_all_reduce(inout, op, stream); });
}

void Collectives::reduce(Tensor inout, ReduceOp op, int root, Purpose purpose, Stream stream) {
  counted(line_for(CollectiveKind::reduce, purpose, inout, stream),
          [&] { do_reduce(inout, op, root, stream); });
}

void Collectives::reduce_scatter(Tensor in, Tensor out, ReduceOp op, Purpose purpose,
                                 Stream stream) {
  counted(line_for(CollectiveKind::reduce_scatter, purpose, in, stream),
          [&] { do_reduce_scatter(in, out, op, stream); });
}

void Collectives::all_gather(Tensor in, Tensor out, Purpose purpose, Stream stream) {
  counted(line_for(CollectiveKind::all_gather, purpose, out, stream),
          [&] { do_all_gather(in, out, stream); });
}

void Collectives::broadcast(Tensor inout, int root, Purpose purpose, Stream stream) {
  counted(line_for(CollectiveKind::broadcast, purpose, inout, stream),
          [&] { do_broadcast(inout, root, stream); });
}

void Collectives::all_to_all(Tensor in, Tensor out, Purpose purpose, Stream stream) {
  counted(line_for(CollectiveKind::all_to_all, purpose, in, stream),
          [&] { do_all_to_all(in, out, stream); });
}

std::unique_ptr<Collectives> Collectives::sub_group(const std::vector<int>& ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  const bool known =
      std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank >= 0 && rank < size_; });
  if (own == ranks.end() || !known) {
    throw std::invalid_argument(concat("Collectives: no part of ", size_, " ranks with ", rank_));
  }
  return do_sub_group(ranks, static_cast<int>(own - ranks.begin()));
}

double Collectives::all_reduce_scalar(double value, ReduceOp op, Purpose purpose, DType dtype) {
  const bool flag = purpose == Purpose::overflow;
  const CollectiveLine line = line_for(CollectiveKind::all_reduce, purpose,
                                       {nullptr, 1, flag ? DType::int8 : dtype}, Stream::compute);
  double result = 0;
  const Seconds time = counted(line, [&] { result = do_all_reduce_scalar(value, op); });
  if (!flag) return result;  // DeepSpeed leaves norms on the device
  device_->ledger().add_transfer(Transfer::device_to_host, line.bytes);
  device_->host_event(HostEvent::synchronization);
  device_->ledger().add_sync(HostSync::overflow, time);
  return result;
}

}  // namespace dstune
