// A drive in memory, behind the system calls of asynchronous I/O, with faults and a clock.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/units.hpp"
#include "kernels/host/nvme/aio_calls.hpp"

namespace dstune::host::testing_support {

/// What a test sets, and what it sees. All contexts of all engines use one.
struct FakeDrive {
  std::mutex mutex;
  std::vector<std::byte> bytes;
  Seconds time = 0;

  /// Changes the result of a request that would move all of its bytes.
  std::function<long(const iocb&)> result = {};
  /// How many of `count` requests a submission takes, or minus errno.
  std::function<long(long count)> accept = {};
  /// What a look at events gives instead: 0: nothing else.
  std::function<long()> events_fault = {};
  long setup_result = 0;
  /// The bytes per second of a request.
  std::function<double(const iocb&)> rate = {};

  std::vector<long> submissions;  ///< counts of requests
  std::vector<long> least_events;
  std::map<aio_context_t, Bytes> bytes_of_context;
  std::map<aio_context_t, std::vector<iocb*>> in_flight;
  std::size_t deepest = 0;  ///< of a context
  Bytes written = 0;
  Bytes read = 0;
  int destroyed = 0;
  aio_context_t last_context = 0;

  void carry_out(const iocb& request, long moved) {
    const bool is_read = request.aio_lio_opcode == IOCB_CMD_PREAD;
    const auto begin = static_cast<std::size_t>(request.aio_offset);
    const auto count = static_cast<std::size_t>(moved);
    if (bytes.size() < begin + count) bytes.resize(begin + count);
    auto* const memory = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(request.aio_buf));
    std::memcpy(is_read ? memory : &bytes[begin], is_read ? &bytes[begin] : memory, count);
    (is_read ? read : written) += count;
    if (rate) time += static_cast<double>(count) / rate(request);
  }
};

class FakeAioCalls final : public AioCalls {
 public:
  explicit FakeAioCalls(FakeDrive& drive) : drive_(drive) {}

  long setup(unsigned, aio_context_t* context) override {
    const std::lock_guard lock(drive_.mutex);
    if (drive_.setup_result < 0) return drive_.setup_result;
    *context = ++drive_.last_context;
    return 0;
  }

  long submit(aio_context_t context, long count, iocb** requests) override {
    const std::lock_guard lock(drive_.mutex);
    const long taken = drive_.accept ? drive_.accept(count) : count;
    if (taken <= 0) return taken;
    drive_.submissions.push_back(taken);
    auto& flight = drive_.in_flight[context];
    flight.insert(flight.end(), requests, requests + taken);
    drive_.deepest = std::max(drive_.deepest, flight.size());
    return taken;
  }

  long get_events(aio_context_t context, long least, long most, io_event* events) override {
    const std::lock_guard lock(drive_.mutex);
    if (const long fault = drive_.events_fault ? drive_.events_fault() : 0; fault < 0) return fault;
    drive_.least_events.push_back(least);
    auto& flight = drive_.in_flight[context];
    // The last ones first, and no more than must be: an engine that counts on an order fails.
    const long count = std::min({least, most, static_cast<long>(flight.size())});
    for (long i = 0; i < count; ++i) {
      const iocb& request = *flight.back();
      const long result =
          drive_.result ? drive_.result(request) : static_cast<long>(request.aio_nbytes);
      if (result > 0) drive_.carry_out(request, result);
      drive_.bytes_of_context[context] += request.aio_nbytes;
      events[i] = {.data = request.aio_data, .obj = 0, .res = result, .res2 = 0};
      flight.pop_back();
    }
    return count;
  }

  long destroy(aio_context_t context) override {
    const std::lock_guard lock(drive_.mutex);
    drive_.in_flight.erase(context);
    ++drive_.destroyed;
    return 0;
  }

 private:
  FakeDrive& drive_;
};

}  // namespace dstune::host::testing_support
