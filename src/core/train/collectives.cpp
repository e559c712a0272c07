#include "core/train/collectives.hpp"

namespace dstune {

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, kCollectiveKinds> kNames = {
      "all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
  return kNames[static_cast<std::size_t>(kind)];
}

double wire_bytes(CollectiveKind kind, Bytes bytes, int group_size) {
  if (group_size <= 1) return 0;
  const double share = static_cast<double>(group_size - 1) / group_size;
  const auto full = static_cast<double>(bytes);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share * full;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return share * full;
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
      return full;
  }
  return 0;
}

template <class Call>
void Collectives::counted(CollectiveKind kind, std::int64_t elements, Bytes bytes, Call call) {
  CollectiveCount& count = counts_[static_cast<std::size_t>(kind)];
  ++count.calls;
  count.elements += static_cast<std::uint64_t>(elements);
  count.bytes += bytes;
  const Seconds begin = device_->now();
  call();
  time_ += device_->now() - begin;
}

void Collectives::all_reduce(Tensor inout, ReduceOp op, Stream stream) {
  counted(CollectiveKind::all_reduce, inout.numel, inout.size(),
          [&] { do_all_reduce(inout, op, stream); });
}

void Collectives::reduce(Tensor inout, ReduceOp op, int root, Stream stream) {
  counted(CollectiveKind::reduce, inout.numel, inout.size(),
          [&] { do_reduce(inout, op, root, stream); });
}

void Collectives::reduce_scatter(Tensor in, Tensor out, ReduceOp op, Stream stream) {
  counted(CollectiveKind::reduce_scatter, in.numel, in.size(),
          [&] { do_reduce_scatter(in, out, op, stream); });
}

void Collectives::all_gather(Tensor in, Tensor out, Stream stream) {
  counted(CollectiveKind::all_gather, out.numel, out.size(),
          [&] { do_all_gather(in, out, stream); });
}

void Collectives::broadcast(Tensor inout, int root, Stream stream) {
  counted(CollectiveKind::broadcast, inout.numel, inout.size(),
          [&] { do_broadcast(inout, root, stream); });
}

void Collectives::all_to_all(Tensor in, Tensor out, Stream stream) {
  counted(CollectiveKind::all_to_all, in.numel, in.size(), [&] { do_all_to_all(in, out, stream); });
}

double Collectives::all_reduce_scalar(double value, ReduceOp op, Bytes element_size) {
  double result = 0;
  counted(CollectiveKind::all_reduce, 1, element_size,
          [&] { result = do_all_reduce_scalar(value, op); });
  return result;
}

void Collectives::reset_counts() noexcept {
  counts_ = {};
  time_ = 0;
}

}  // namespace dstune
