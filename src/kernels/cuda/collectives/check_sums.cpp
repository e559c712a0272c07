#include "kernels/cuda/collectives/check_sums.hpp"

#include <algorithm>
#include <cstddef>

#include "core/base/text.hpp"
#include "core/device/faults.hpp"
#include "core/device/known_values.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

// Slingshot's sums went wrong mostly at 1 MiB, in a third of the runs (NVIDIA/nccl#2001).
constexpr int kSums = 4;
constexpr std::size_t kMost = std::size_t{1} << 18U;  // elements of a message
constexpr std::size_t kPart = 4096;                   // of one rank, where ranks have parts
static_assert(kMost * sizeof(float) <= Gpu::kStaging);
static_assert(2 * kMost * sizeof(float) <= Gpu::kScratch);

/// Checks one collective after the other, from one buffer into another.
class SumCheck {
 public:
  SumCheck(const NcclCommunicator& communicator, Gpu& gpu, const std::string& who,
           const Waiting& waiting)
      : communicator_(communicator),
        gpu_(gpu),
        who_(who),
        waiting_(waiting),
        in_(static_cast<float*>(gpu.scratch(Stream::communication))),
        out_(in_ + kMost) {}

  void all_reduce() const {
    write(kMost);
    DSTUNE_NCCL_CHECK(communicator_,
                      AllReduce(in_, out_, kMost, ncclFloat, ncclSum, handle(), stream()));
    expect("ncclAllReduce", kMost, [&](std::size_t i) { return known_sum(size(), i); });
  }

  void reduce() const {
    write(part_);
    DSTUNE_NCCL_CHECK(communicator_,
                      Reduce(in_, out_, part_, ncclFloat, ncclSum, 0, handle(), stream()));
    const std::size_t received = rank() == 0 ? part_ : 0;
    expect("ncclReduce", received, [&](std::size_t i) { return known_sum(size(), i); });
  }

  void reduce_scatter() const {
    write(whole_);
    DSTUNE_NCCL_CHECK(communicator_,
                      ReduceScatter(in_, out_, part_, ncclFloat, ncclSum, handle(), stream()));
    expect("ncclReduceScatter", part_,
           [&](std::size_t i) { return known_sum(size(), own_begin() + i); });
  }

  void all_gather() const {
    write(part_);
    DSTUNE_NCCL_CHECK(communicator_, AllGather(in_, out_, part_, ncclFloat, handle(), stream()));
    expect("ncclAllGather", whole_,
           [&](std::size_t i) { return known_value(static_cast<int>(i / part_), i % part_); });
  }

  void broadcast() const {
    write(part_);
    DSTUNE_NCCL_CHECK(communicator_, Broadcast(in_, out_, part_, ncclFloat, 0, handle(), stream()));
    expect("ncclBroadcast", part_, [](std::size_t i) { return known_value(0, i); });
  }

  void all_to_all() const {
    write(whole_);
    communicator_.all_to_all(in_, out_, part_, ncclFloat, stream());
    expect("ncclSend and ncclRecv", whole_, [&](std::size_t i) {
      return known_value(static_cast<int>(i / part_), own_begin() + i % part_);
    });
  }

 private:
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  ncclComm_t handle() const { return communicator_.get(); }
  cudaStream_t stream() const { return gpu_.stream(Stream::communication); }
  float* staging() const { return static_cast<float*>(gpu_.staging()); }
  std::size_t own_begin() const { return part_ * static_cast<std::size_t>(rank()); }

  /// This rank's values into the first `count` elements; what is received must not stay from
  /// before.
  void write(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) staging()[i] = known_value(rank(), i);
    DSTUNE_CUDA_CHECK(
        cudaMemcpyAsync(in_, staging(), count * sizeof(float), cudaMemcpyHostToDevice, stream()));
    constexpr int kNaN = 0xFF;
    DSTUNE_CUDA_CHECK(cudaMemsetAsync(out_, kNaN, kMost * sizeof(float), stream()));
  }

  template <class Expected>
  void expect(const char* call, std::size_t count, Expected expected) const {
    communicator_.settle(call, waiting_);
    DSTUNE_CUDA_CHECK(
        cudaMemcpyAsync(staging(), out_, count * sizeof(float), cudaMemcpyDeviceToHost, stream()));
    wait();
    const auto wrong = first_wrong({staging(), count}, expected);
    if (!wrong) return;
    throw WrongSumsError(concat(
        call, " gave ", wrong->actual, " instead of ", wrong->expected, " at element ",
        wrong->index, " of known values on ", who_,
        ": NCCL cannot be trusted here; try another version of it, or another network (NCCL_NET)"));
  }

  void wait() const {
    const auto end = gpu_.events().take_untimed();
    DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(end), stream()));
    communicator_.wait_for(gpu_, EventPool::of(end), waiting_);
  }

  const NcclCommunicator& communicator_;
  Gpu& gpu_;
  const std::string& who_;
  const Waiting& waiting_;
  float* in_;
  float* out_;
  std::size_t part_ = std::min(kPart, kMost / static_cast<std::size_t>(communicator_.size()));
  std::size_t whole_ = part_ * static_cast<std::size_t>(communicator_.size());
};

}  // namespace

void check_sums(const NcclCommunicator& communicator, Gpu& gpu, const std::string& who,
                const Waiting& waiting) {
  const SumCheck check(communicator, gpu, who, waiting);
  for (int time = 0; time < kSums; ++time) check.all_reduce();
  check.reduce();
  check.reduce_scatter();
  check.all_gather();
  check.broadcast();
  check.all_to_all();
}

}  // namespace dstune::cuda
