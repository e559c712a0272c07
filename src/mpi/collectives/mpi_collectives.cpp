#include "mpi/collectives/mpi_collectives.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "mpi/collectives/combine.hpp"
#include "mpi/collectives/ring.hpp"

namespace dstune {

namespace {

std::int64_t slot_elements(DType dtype) {
  return static_cast<std::int64_t>(Transfers::kSlotSize / size_of(dtype));
}

/// Cuts `tensor` into pieces that fit a slot.
class Pieces {
 public:
  explicit Pieces(Tensor tensor) : tensor_(tensor), length_(slot_elements(tensor.dtype)) {}

  std::int64_t count() const { return (tensor_.numel + length_ - 1) / length_; }

  Tensor operator[](std::int64_t index) const {
    const std::int64_t begin = index * length_;
    return tensor_.slice(begin, std::min(length_, tensor_.numel - begin));
  }

 private:
  Tensor tensor_;
  std::int64_t length_;
};

int slot_of(std::int64_t piece) { return static_cast<int>(piece % Transfers::kSlots); }

void copy_in(Tensor from, std::byte* slot) { std::memcpy(slot, from.data, from.size()); }
void copy_out(const std::byte* slot, Tensor to) { std::memcpy(to.data, slot, to.size()); }

/// The MPI type of elements of `dtype`; MPI_DATATYPE_NULL for a type that MPI does not have.
MPI_Datatype mpi_type_of(DType dtype) {
  if (dtype == DType::fp32) return MPI_FLOAT;
  if (dtype == DType::fp64) return MPI_DOUBLE;
  return dtype == DType::uint8 ? MPI_UINT8_T : MPI_DATATYPE_NULL;
}

}  // namespace

MpiCollectives::MpiCollectives(Device& device, MpiGroup& group)
    : Collectives(device, group.rank(), group.size()),
      group_(&group),
      members_(static_cast<std::size_t>(group.size())) {
  std::iota(members_.begin(), members_.end(), 0);
}

MpiCollectives::MpiCollectives(Device& device, MpiGroup& group, std::vector<int> members, int own)
    : Collectives(device, own, static_cast<int>(members.size())),
      group_(&group),
      members_(std::move(members)) {}

std::unique_ptr<Collectives> MpiCollectives::do_sub_group(const std::vector<int>& ranks, int own) {
  std::vector<int> members;
  members.reserve(ranks.size());
  for (const int rank : ranks) members.push_back(member(rank));
  // std::make_unique cannot call the private constructor.
  return std::unique_ptr<Collectives>(
      new MpiCollectives(device(), *group_, std::move(members), own));
}

// A single number goes through MPI's own all-reduce, because a ring of N ranks would take 2 (N - 1)
// rounds.
void MpiCollectives::all_reduce_number(Tensor inout, ReduceOp op) {
  Transfers& transfers = group_->transfers();
  copy_in(inout, transfers.slot(0));
  transfers.all_reduce(0, 1, mpi_type_of(inout.dtype), op == ReduceOp::sum ? MPI_SUM : MPI_MAX);
  transfers.wait(0);
  copy_out(transfers.slot(0), inout);
}

void MpiCollectives::do_all_reduce(Tensor inout, ReduceOp op) {
  if (size() == 1) return;
  const bool is_number = inout.numel == 1 && mpi_type_of(inout.dtype) != MPI_DATATYPE_NULL;
  if (is_number && is_whole()) return all_reduce_number(inout, op);
  Ring ring(group_->transfers(), members_, rank());
  const std::int64_t stride = slot_elements(inout.dtype) * size();
  for (std::int64_t begin = 0; begin < inout.numel; begin += stride) {
    const Tensor piece = inout.slice(begin, std::min(stride, inout.numel - begin));
    const auto part = [&](int index) {
      const std::int64_t first = piece.numel * index / size();
      return piece.slice(first, piece.numel * (index + 1) / size() - first);
    };
    const int slot = ring.reduce(part, rank(), op);
    copy_out(group_->transfers().slot(slot), part(rank()));
    ring.gather(part, rank(), slot);
  }
}

void MpiCollectives::do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) {
  if (size() == 1) {
    if (in.data != out.data) std::memcpy(out.data, in.data, out.size());
    return;
  }
  Ring ring(group_->transfers(), members_, rank());
  const std::int64_t stride = slot_elements(in.dtype);
  for (std::int64_t begin = 0; begin < out.numel; begin += stride) {
    const std::int64_t count = std::min(stride, out.numel - begin);
    const auto part = [&](int index) { return in.slice(index * out.numel + begin, count); };
    const int slot = ring.reduce(part, rank(), op);
    copy_out(group_->transfers().slot(slot), out.slice(begin, count));
  }
}

void MpiCollectives::do_all_gather(Tensor in, Tensor out) {
  const Tensor own = out.slice(rank() * in.numel, in.numel);
  if (in.data != own.data) std::memcpy(own.data, in.data, in.size());
  if (size() == 1) return;
  Ring ring(group_->transfers(), members_, rank());
  const std::int64_t stride = slot_elements(in.dtype);
  for (std::int64_t begin = 0; begin < in.numel; begin += stride) {
    const std::int64_t count = std::min(stride, in.numel - begin);
    const auto part = [&](int index) { return out.slice(index * in.numel + begin, count); };
    copy_in(part(rank()), group_->transfers().slot(0));
    ring.gather(part, rank(), 0);
  }
}

// The ranks form a chain that ends at the root: every rank adds its own piece to the one that the
// rank before it sends. The next piece is under way while this one is added.
void MpiCollectives::do_reduce(Tensor inout, ReduceOp op, int root) {
  if (size() == 1) return;
  Transfers& transfers = group_->transfers();
  const int previous = (rank() + size() - 1) % size();
  const int next = (rank() + 1) % size();
  const bool first = previous == root;
  const bool last = rank() == root;
  const Pieces pieces(inout);
  const auto receive = [&](std::int64_t index) {
    transfers.wait(slot_of(index));
    transfers.receive(slot_of(index), pieces[index].size(), member(previous));
  };
  if (!first && pieces.count() > 0) receive(0);
  for (std::int64_t index = 0; index < pieces.count(); ++index) {
    const Tensor mine = pieces[index];
    std::byte* slot = transfers.slot(slot_of(index));
    if (!first && index + 1 < pieces.count()) receive(index + 1);
    transfers.wait(slot_of(index));
    if (first) {
      copy_in(mine, slot);
    } else {
      combine(op, mine, Tensor{slot, mine.numel, mine.dtype});
    }
    if (last) {
      copy_out(slot, mine);
    } else {
      transfers.send(slot_of(index), mine.size(), member(next));
    }
  }
  transfers.wait_all();
}

void MpiCollectives::do_broadcast(Tensor inout, int root) {
  if (size() == 1) return;
  Transfers& transfers = group_->transfers();
  const Pieces pieces(inout);
  const auto finish = [&](std::int64_t index) {
    transfers.wait(slot_of(index));
    if (rank() != root) copy_out(transfers.slot(slot_of(index)), pieces[index]);
  };
  for (std::int64_t index = 0; index < pieces.count(); ++index) {
    if (rank() == root) copy_in(pieces[index], transfers.slot(slot_of(index)));
    broadcast_from(root, pieces[index].size(), slot_of(index));
    if (index > 0) finish(index - 1);
  }
  if (pieces.count() > 0) finish(pieces.count() - 1);
}

// In round k every rank sends to the k-th rank after it and receives from the k-th before it.
void MpiCollectives::do_all_to_all(Tensor in, Tensor out) {
  constexpr int kSend = 0;
  constexpr int kReceive = 1;
  Transfers& transfers = group_->transfers();
  const std::int64_t length = in.numel / size();
  if (length == 0) return;
  const auto part = [&](Tensor whole, int index) { return whole.slice(index * length, length); };
  std::memcpy(part(out, rank()).data, part(in, rank()).data, part(in, rank()).size());
  for (int round = 1; round < size(); ++round) {
    const int to = (rank() + round) % size();
    const int from = (rank() + size() - round) % size();
    const Pieces sent(part(in, to));
    const Pieces received(part(out, from));
    for (std::int64_t index = 0; index < sent.count(); ++index) {
      transfers.receive(kReceive, received[index].size(), member(from));
      copy_in(sent[index], transfers.slot(kSend));
      transfers.send(kSend, sent[index].size(), member(to));
      transfers.wait(kReceive);
      copy_out(transfers.slot(kReceive), received[index]);
      transfers.wait(kSend);
    }
  }
}

// MPI's own broadcast needs the whole communicator; in a part of the group the root sends to each
// member.
void MpiCollectives::broadcast_from(int root, std::size_t bytes, int slot) {
  Transfers& transfers = group_->transfers();
  if (is_whole()) {
    transfers.broadcast(slot, bytes, member(root));
  } else if (rank() != root) {
    transfers.receive(slot, bytes, member(root));
  } else {
    for (int place = 0; place < size(); ++place) {
      if (place == root) continue;
      transfers.wait(slot);
      transfers.send(slot, bytes, member(place));
    }
  }
}

}  // namespace dstune
