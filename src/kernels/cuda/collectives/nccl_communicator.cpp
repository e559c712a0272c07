#include "kernels/cuda/collectives/nccl_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "core/base/text.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

// A part shares its parent's resources only if its parent's configuration says so.
ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;
  return config;
}

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclInt8) return 1;
  if (type == ncclFloat64) return 8;
  return type == ncclFloat32 ? 4 : 2;
}

/// What a wait does between its looks.
class Patience {
 public:
  Patience(const NcclCommunicator& communicator, const char* call, const Waiting& waiting)
      : communicator_(communicator), call_(call), waiting_(waiting) {}

  void use() const {
    if (waiting_.meanwhile) waiting_.meanwhile();
    if (Clock::now() - begin_ < std::chrono::duration<Seconds>(waiting_.limit)) return;
    throw NcclError(concat(call_, ": not done after ", format_seconds(waiting_.limit), " on rank ",
                           communicator_.rank(), " of ", communicator_.size(),
                           ": another rank may be missing"));
  }

 private:
  using Clock = std::chrono::steady_clock;

  const NcclCommunicator& communicator_;
  const char* call_;
  const Waiting& waiting_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

NcclCommunicator::NcclCommunicator(int rank, int size, EndingCommunicators& endings)
    : endings_(&endings),
      cell_(std::make_unique<ncclComm_t>(nullptr)),
      rank_(rank),
      size_(size),
      known_warning_(last_nccl_warning()) {}

// Once the other constructor is done, the destructor runs also if this one throws.
NcclCommunicator::NcclCommunicator(const ncclUniqueId& id, int rank, int size,
                                   const Waiting& waiting, EndingCommunicators& endings)
    : NcclCommunicator(rank, size, endings) {
  ncclConfig_t config = configuration();
  DSTUNE_NCCL_CHECK(*this, CommInitRankConfig(cell_.get(), size, id, rank, &config));
  settle("ncclCommInitRankConfig", waiting);
  is_made_ = true;
}

NcclCommunicator::~NcclCommunicator() {
  if (!cell_) return;  // a part, which ends with the whole
  std::vector<CommunicatorCell> cells;
  collect(cells);
  endings_->add(std::move(cells));
}

// The group ends whatever fails in it: else all later calls would belong to it.
void NcclCommunicator::all_to_all(const void* in, void* out, std::size_t count, ncclDataType_t type,
                                  cudaStream_t stream) const {
  ncclResult_t first = nccl().GroupStart();
  const auto note = [&first](ncclResult_t result) {
    if (first == ncclSuccess || first == ncclInProgress) first = result;
  };
  const std::size_t bytes = count * size_of(type);
  for (int peer = 0; peer < size_; ++peer) {
    const std::size_t offset = bytes * static_cast<std::size_t>(peer);
    note(
        nccl().Send(static_cast<const std::byte*>(in) + offset, count, type, peer, *cell_, stream));
    note(nccl().Recv(static_cast<std::byte*>(out) + offset, count, type, peer, *cell_, stream));
  }
  note(nccl().GroupEnd());
  check_nccl(first, "a group of ncclSend and ncclRecv", known_warning_, __FILE__, __LINE__);
}

void NcclCommunicator::settle(const char* call, const Waiting& waiting) const {
  Patience patience(*this, call, waiting);
  for (;;) {
    ncclResult_t state = ncclSuccess;
    DSTUNE_NCCL_CHECK(*this, CommGetAsyncError(*cell_, &state));
    check_nccl(state, call, known_warning_, __FILE__, __LINE__);
    if (state == ncclSuccess) break;
    patience.use();
    std::this_thread::yield();
  }
  known_warning_ = last_nccl_warning();
}

void NcclCommunicator::wait_for(const Gpu& gpu, cudaEvent_t event, const Waiting& waiting) const {
  Patience patience(*this, "a collective", waiting);
  gpu.wait_for(event, [&] {
    check();
    patience.use();
  });
}

void NcclCommunicator::check() const {
  ncclResult_t state = ncclSuccess;
  DSTUNE_NCCL_CHECK(*this, CommGetAsyncError(*cell_, &state));
  check_nccl(state, "a collective", known_warning_, __FILE__, __LINE__);
  for (const auto& [ranks, part] : parts_) {
    if (part->is_made_ && part->get() != nullptr) part->check();
  }
}

bool NcclCommunicator::has_failed() const noexcept {
  try {
    check();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

NcclCommunicator* NcclCommunicator::part(const std::vector<int>& ranks) const {
  const auto found = parts_.find(ranks);
  return found == parts_.end() ? nullptr : found->second.get();
}

// NCCL sets the pointer only when all is done, and this communicator tells when that is.
NcclCommunicator& NcclCommunicator::make_part(const std::vector<int>& ranks, int own,
                                              const Waiting& waiting) {
  const int size = static_cast<int>(ranks.size());
  const int color = size == 1 ? NCCL_SPLIT_NOCOLOR : *std::min_element(ranks.begin(), ranks.end());
  // The constructor is private to make_unique.
  parts_[ranks] = std::unique_ptr<NcclCommunicator>(new NcclCommunicator(own, size, *endings_));
  NcclCommunicator& part = *parts_[ranks];
  ncclConfig_t config = configuration();
  DSTUNE_NCCL_CHECK(*this, CommSplit(*cell_, color, own, part.cell_.get(), &config));
  settle("ncclCommSplit", waiting);
  if (part.get() != nullptr) part.settle("ncclCommSplit", waiting);
  part.is_made_ = true;
  return part;
}

// Parts first, since they use what is this one's. A part that is still being made is known when
// this one has ended.
void NcclCommunicator::collect(std::vector<CommunicatorCell>& cells) {
  for (const auto& [ranks, part] : parts_) {
    if (part->is_made_) part->collect(cells);
  }
  cells.push_back(std::move(cell_));
  for (const auto& [ranks, part] : parts_) {
    if (!part->is_made_) part->collect(cells);
  }
}

}  // namespace dstune::cuda
