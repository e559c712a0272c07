#include "kernels/cuda/collectives/nccl_collectives.hpp"

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <utility>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

ncclDataType_t type_of(Tensor tensor) {
  switch (tensor.dtype) {
    case DType::fp32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::fp16:
      return ncclFloat16;
    case DType::int8:
      return ncclInt8;
    case DType::uint8:
      return ncclUint8;
    case DType::fp64:
      return ncclFloat64;
    case DType::int64:
      break;
  }
  throw std::invalid_argument("NcclCollectives: int64 is never sent");
}

ncclRedOp_t operation_of(ReduceOp op) { return op == ReduceOp::sum ? ncclSum : ncclMax; }

constexpr int kMostLaunches = 4;  // of one call: its kernel, and the events around it

std::size_t count_of(Tensor tensor) { return static_cast<std::size_t>(tensor.numel); }

}  // namespace

NcclCollectives::NcclCollectives(CudaDevice& device, const CommunicatorMaker& maker,
                                 NcclCommunicator* communicator, std::string network,
                                 std::function<void(const End&)> on_end)
    : Collectives(device, maker.group().rank(), maker.group().size()),
      device_(device),
      maker_(maker),
      communicator_(communicator),
      network_(std::move(network)),
      on_end_(std::move(on_end)),
      exceptions_(std::uncaught_exceptions()) {
  if (communicator_ != nullptr) device_.on_wait([this] { look_for_errors(); });
}

NcclCollectives::NcclCollectives(NcclCollectives& whole, std::vector<int> ranks, int own)
    : Collectives(whole.device_, own, static_cast<int>(ranks.size())),
      device_(whole.device_),
      whole_(&whole),
      maker_(whole.maker_),
      communicator_(nullptr),
      ranks_(std::move(ranks)),
      network_(whole.network_),
      exceptions_(std::uncaught_exceptions()) {}

// Calls that an exception has kept from their end must not swallow those of the next communicator.
NcclCollectives::~NcclCollectives() {
  if (coalesces_) nccl().GroupEnd();
  if (whole_ != nullptr || communicator_ == nullptr) return;
  device_.on_wait({});
  const bool failed = std::uncaught_exceptions() > exceptions_ || communicator_->has_failed();
  on_end_({maker_.cost(), failed});
}

/// nullptr where there is nobody to talk to in the whole either; its get() may be null for the
/// part.
NcclCommunicator* NcclCollectives::communicator() {
  if (communicator_ != nullptr || whole_ == nullptr) return communicator_;
  NcclCommunicator* whole = whole_->communicator();
  if (whole == nullptr || whole->get() == nullptr) return nullptr;
  communicator_ = whole->part(ranks_);
  if (communicator_ == nullptr) {
    NcclCollectives* first = whole_;
    while (first->whole_ != nullptr) first = first->whole_;
    communicator_ = &first->maker_.make_part(*whole, ranks_, rank());
  }
  return communicator_;
}

// With one rank nothing is sent, but the others of the whole may need it to make their parts.
template <class Call>
void NcclCollectives::queue(const char* name, Tensor sent, Call call) {
  const NcclCommunicator* own = communicator();
  if (size() == 1 || sent.numel == 0) return;
  call(*own, device_.stream_for(Stream::communication, kMostLaunches));
  if (!coalesces_) own->settle(name, maker_.waiting());
}

void NcclCollectives::copy(Tensor from, Tensor to) {
  if (from.data == to.data || from.numel == 0) return;
  DSTUNE_CUDA_CHECK(cudaMemcpyAsync(to.data, from.data, from.size(), cudaMemcpyDeviceToDevice,
                                    device_.stream_for(Stream::communication, 1)));
}

void NcclCollectives::do_all_reduce(Tensor inout, ReduceOp op) {
  queue("ncclAllReduce", inout, [&](const NcclCommunicator& own, cudaStream_t stream) {
    DSTUNE_NCCL_CHECK(own, AllReduce(inout.data, inout.data, count_of(inout), type_of(inout),
                                     operation_of(op), own.get(), stream));
  });
}

void NcclCollectives::do_reduce(Tensor inout, ReduceOp op, int root) {
  queue("ncclReduce", inout, [&](const NcclCommunicator& own, cudaStream_t stream) {
    DSTUNE_NCCL_CHECK(own, Reduce(inout.data, inout.data, count_of(inout), type_of(inout),
                                  operation_of(op), root, own.get(), stream));
  });
}

void NcclCollectives::do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) {
  if (size() == 1) copy(in, out);
  queue("ncclReduceScatter", in, [&](const NcclCommunicator& own, cudaStream_t stream) {
    DSTUNE_NCCL_CHECK(own, ReduceScatter(in.data, out.data, count_of(out), type_of(in),
                                         operation_of(op), own.get(), stream));
  });
}

void NcclCollectives::do_all_gather(Tensor in, Tensor out) {
  if (size() == 1) copy(in, out);
  queue("ncclAllGather", in, [&](const NcclCommunicator& own, cudaStream_t stream) {
    DSTUNE_NCCL_CHECK(own,
                      AllGather(in.data, out.data, count_of(in), type_of(in), own.get(), stream));
  });
}

void NcclCollectives::do_broadcast(Tensor inout, int root) {
  queue("ncclBroadcast", inout, [&](const NcclCommunicator& own, cudaStream_t stream) {
    DSTUNE_NCCL_CHECK(own, Broadcast(inout.data, inout.data, count_of(inout), type_of(inout), root,
                                     own.get(), stream));
  });
}

void NcclCollectives::do_all_to_all(Tensor in, Tensor out) {
  if (size() == 1) copy(in, out);
  queue("ncclSend and ncclRecv", in, [&](const NcclCommunicator& own, cudaStream_t stream) {
    own.all_to_all(in.data, out.data, count_of(in) / static_cast<std::size_t>(size()), type_of(in),
                   stream);
  });
}

std::unique_ptr<Collectives> NcclCollectives::do_sub_group(const std::vector<int>& ranks, int own) {
  // The constructor is private to make_unique.
  return std::unique_ptr<Collectives>(new NcclCollectives(*this, ranks, own));
}

// A communicator cannot be made within a group of calls.
void NcclCollectives::do_begin_coalescing() {
  communicator();
  if (size() == 1) return;
  DSTUNE_NCCL_CHECK(*communicator_, GroupStart());
  coalesces_ = true;
}

void NcclCollectives::do_end_coalescing() {
  if (!std::exchange(coalesces_, false)) return;
  DSTUNE_NCCL_CHECK(*communicator_, GroupEnd());
  communicator_->settle("ncclGroupEnd", maker_.waiting());
}

// NCCL's look takes locks and reads memory that its threads write.
void NcclCollectives::look_for_errors() {
  constexpr std::chrono::microseconds kPause{500};
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kPause) return;
  looked_ = now;
  communicator_->check();
}

}  // namespace dstune::cuda
