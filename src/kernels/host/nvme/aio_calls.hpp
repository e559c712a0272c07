// The kernel's asynchronous I/O by its own system calls, which is what libaio calls.
#pragma once

#include <memory>

#include <linux/aio_abi.h>

namespace dstune::host {

/// io_setup(2) and its kin. Each gives what the system call gives, or minus errno.
/// Called by several threads at once, each with its own context.
class AioCalls {
 public:
  AioCalls() = default;
  virtual ~AioCalls() = default;
  AioCalls(const AioCalls&) = delete;
  AioCalls& operator=(const AioCalls&) = delete;

  virtual long setup(unsigned events, aio_context_t* context) = 0;
  virtual long submit(aio_context_t context, long count, iocb** requests) = 0;
  /// Waits for at least `least` events.
  virtual long get_events(aio_context_t context, long least, long most, io_event* events) = 0;
  /// Waits for what is under way.
  virtual long destroy(aio_context_t context) = 0;
};

/// Those of the system.
std::unique_ptr<AioCalls> make_system_aio_calls();

}  // namespace dstune::host
