#include "kernels/host/nvme/aio_context.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/text.hpp"

namespace dstune::host {

/// A transfer on its way.
struct AioContext::Flight {
  const FileTransfer& transfer;
  Bytes next = 0;      ///< bytes for which requests have been made
  long in_flight = 0;  ///< requests
  std::optional<FileError> fault = {};

  FileError error_of(const iocb& request, int code, Bytes moved) const {
    return {.operation = transfer.direction == AioDirection::read ? "read" : "write",
            .file = transfer.path,
            .offset = static_cast<Bytes>(request.aio_offset),
            .size = request.aio_nbytes,
            .moved = moved,
            .code = code,
            .remark = code == EINVAL ? "offset or size is not a multiple of the drive's logical "
                                       "block, or there is no O_DIRECT"
                                     : ""};
  }

  void keep(FileError found) {
    const auto rank = [](const FileError& error) {
      return std::pair(error.code == 0, error.offset);
    };
    if (!fault || rank(found) < rank(*fault)) fault = std::move(found);
  }
};

std::optional<FileError> AioContext::check_setup(long result, int queue_depth) {
  if (result >= 0) return std::nullopt;
  FileError error{.operation = concat("io_setup of ", queue_depth, " requests"),
                  .file = {},
                  .code = static_cast<int>(-result),
                  .remark = {}};
  if (error.code == EAGAIN) {
    error.remark = "all processes together may have as many as sysctl fs.aio-max-nr says";
  }
  return error;
}

OrFileError<AioContext> AioContext::make(const AioSettings& settings, AioCalls& calls) {
  aio_context_t context = 0;
  const long result = calls.setup(static_cast<unsigned>(settings.queue_depth), &context);
  if (auto error = check_setup(result, settings.queue_depth)) return std::move(*error);
  return AioContext(settings, calls, context);
}

AioContext::AioContext(const AioSettings& settings, AioCalls& calls, aio_context_t context)
    : settings_(settings), calls_(&calls), context_(context) {
  const auto depth = static_cast<std::size_t>(settings.queue_depth);
  requests_.resize(depth);
  events_.resize(depth);
  free_.resize(depth);
  for (std::size_t i = 0; i < depth; ++i) free_[i] = depth - 1 - i;
  waiting_.reserve(depth);
}

// The kernel knows requests by their addresses, which a vector keeps when it is moved.
AioContext::AioContext(AioContext&& other) noexcept
    : settings_(other.settings_),
      calls_(other.calls_),
      context_(std::exchange(other.context_, 0)),
      requests_(std::move(other.requests_)),
      events_(std::move(other.events_)),
      free_(std::move(other.free_)),
      waiting_(std::move(other.waiting_)) {}

AioContext::~AioContext() { close(); }

void AioContext::close() noexcept {
  if (context_ != 0) calls_->destroy(std::exchange(context_, 0));
}

std::optional<FileError> AioContext::transfer(const FileTransfer& transfer) {
  Flight flight{transfer};
  if (context_ == 0) {
    return FileError{
        .operation = "io_submit", .file = transfer.path, .code = EINVAL, .remark = "after a fault"};
  }
  for (;;) {
    if (!flight.fault) prepare(flight);
    submit(flight);
    if (flight.in_flight == 0 && waiting_.empty()) return std::move(flight.fault);
    if (flight.in_flight > 0) collect(flight);
  }
}

void AioContext::prepare(Flight& flight) {
  const FileTransfer& transfer = flight.transfer;
  while (flight.next < transfer.size && !free_.empty()) {
    const std::size_t place = free_.back();
    free_.pop_back();
    iocb& request = requests_[place];
    std::memset(&request, 0, sizeof request);
    const bool is_read = transfer.direction == AioDirection::read;
    request.aio_data = place;
    request.aio_lio_opcode = is_read ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
    request.aio_fildes = static_cast<std::uint32_t>(transfer.file);
    request.aio_buf = reinterpret_cast<std::uintptr_t>(transfer.buffer + flight.next);
    request.aio_nbytes = std::min(settings_.block_size, transfer.size - flight.next);
    request.aio_offset = static_cast<std::int64_t>(transfer.offset + flight.next);
    flight.next += request.aio_nbytes;
    waiting_.push_back(&request);
  }
}

void AioContext::submit(Flight& flight) {
  std::size_t done = 0;
  while (done < waiting_.size() && !flight.fault) {
    const auto left = static_cast<long>(waiting_.size() - done);
    const long count = settings_.single_submit ? 1 : left;
    const long taken = calls_->submit(context_, count, &waiting_[done]);
    if (taken > 0) {
      done += static_cast<std::size_t>(taken);
      flight.in_flight += taken;
    } else if (taken == -EINTR) {
      continue;
    } else if ((taken == 0 || taken == -EAGAIN) && flight.in_flight > 0) {
      break;  // there is room when some have ended
    } else {
      const int code = taken == 0 ? EAGAIN : static_cast<int>(-taken);
      flight.keep(flight.error_of(*waiting_[done], code, 0));
    }
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
  if (!flight.fault) return;
  for (const iocb* request : waiting_) free_.push_back(request->aio_data);
  waiting_.clear();
}

void AioContext::collect(Flight& flight) {
  const bool is_refilled = settings_.overlap_events && !flight.fault;
  const long least = is_refilled ? 1 : flight.in_flight;
  const long most = flight.in_flight;
  const long ended = calls_->get_events(context_, least, most, events_.data());
  if (ended == -EINTR) return;
  if (ended < 0) {
    // Requests are still under way, and the buffer is theirs until the context is gone.
    close();
    flight.keep({.operation = "io_getevents",
                 .file = flight.transfer.path,
                 .code = static_cast<int>(-ended),
                 .remark = {}});
    flight.in_flight = 0;
    return;
  }
  for (long i = 0; i < ended; ++i) {
    const io_event& event = events_[static_cast<std::size_t>(i)];
    const iocb& request = requests_[event.data];
    free_.push_back(event.data);
    if (event.res < 0) {
      flight.keep(flight.error_of(request, static_cast<int>(-event.res), 0));
    } else if (static_cast<Bytes>(event.res) < request.aio_nbytes) {
      flight.keep(flight.error_of(request, 0, static_cast<Bytes>(event.res)));
    }
  }
  flight.in_flight -= ended;
}

}  // namespace dstune::host
