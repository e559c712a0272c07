#include "kernels/host/nvme/aio_engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/host/blocked_signals.hpp"

namespace dstune::host {
namespace {

void check(const AioSettings& settings) {
  if (settings.queue_depth < 1 || settings.intra_op_parallelism < 1 || settings.block_size == 0 ||
      settings.block_size % kDirectAlignment != 0) {
    throw std::invalid_argument("these settings of aio cut no file into requests");
  }
}

/// The part of thread `thread` of `threads`: equal ones, where aligned pieces can be divided so.
FileTransfer part_of(const FileTransfer& whole, int thread, int threads) {
  const Bytes pieces = (whole.size + kDirectAlignment - 1) / kDirectAlignment;
  const auto border = [&](int number) {
    const Bytes piece = pieces * static_cast<Bytes>(number) / static_cast<Bytes>(threads);
    return std::min(whole.size, piece * kDirectAlignment);
  };
  FileTransfer part = whole;
  const Bytes begin = border(thread);
  part.buffer += begin;
  part.offset += begin;
  part.size = border(thread + 1) - begin;
  return part;
}

}  // namespace

OrFileError<std::unique_ptr<AioEngine>> AioEngine::make(const AioSettings& settings,
                                                        std::unique_ptr<AioCalls> calls) {
  check(settings);
  std::vector<Worker> workers;
  workers.reserve(static_cast<std::size_t>(settings.intra_op_parallelism));
  for (int i = 0; i < settings.intra_op_parallelism; ++i) {
    auto context = AioContext::make(settings, *calls);
    if (auto* const error = std::get_if<FileError>(&context)) return std::move(*error);
    workers.emplace_back(std::move(std::get<AioContext>(context)));
  }
  return std::unique_ptr<AioEngine>(new AioEngine(settings, std::move(calls), std::move(workers)));
}

AioEngine::AioEngine(const AioSettings& settings, std::unique_ptr<AioCalls> calls,
                     std::vector<Worker> workers)
    : settings_(settings), calls_(std::move(calls)), workers_(std::move(workers)) {
  const BlockedSignals blocked;
  try {
    for (Worker& worker : workers_) threads_.emplace_back([this, &worker] { serve(worker); });
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    part_came_.notify_all();
    throw;  // threads_ are joined before what they use is gone
  }
}

AioEngine::~AioEngine() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    for (Worker& worker : workers_) worker.parts.clear();
  }
  part_came_.notify_all();
  threads_.clear();
}

void AioEngine::start(const FileTransfer& transfer) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t operation = started_++;
    const auto threads = static_cast<int>(workers_.size());
    for (int i = 0; i < threads; ++i) {
      FileTransfer part = part_of(transfer, i, threads);
      if (part.size == 0) continue;
      workers_[static_cast<std::size_t>(i)].parts.push_back({std::move(part), operation});
      ++left_;
    }
  }
  part_came_.notify_all();
}

bool AioEngine::ends_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return all_ended_.wait_for(lock, time, [this] { return left_ == 0; });
}

std::optional<FileError> AioEngine::wait() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return left_ == 0; });
  if (!fault_) return std::nullopt;
  std::optional<FileError> error(std::move(fault_->error));
  fault_.reset();
  return error;
}

void AioEngine::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    part_came_.wait(lock, [&] { return ends_ || !worker.parts.empty(); });
    if (worker.parts.empty()) break;
    const Part part = std::move(worker.parts.front());
    worker.parts.pop_front();
    lock.unlock();
    auto error = worker.context->transfer(part.transfer);
    lock.lock();
    if (error) keep(part.operation, std::move(*error));
    if (--left_ == 0) all_ended_.notify_all();
  }
  lock.unlock();
  // The kernel takes up to a tenth of a second for it: all threads wait at once.
  worker.context.reset();
}

void AioEngine::keep(std::uint64_t operation, FileError&& error) {
  if (fault_ &&
      std::pair(fault_->operation, fault_->error.offset) <= std::pair(operation, error.offset)) {
    return;
  }
  fault_.emplace(Fault{operation, std::move(error)});
}

}  // namespace dstune::host
