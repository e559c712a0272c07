#include "kernels/host/nvme/aio_calls.hpp"

#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace dstune::host {
namespace {

long or_error(long result) { return result < 0 ? -static_cast<long>(errno) : result; }

class SystemAioCalls final : public AioCalls {
 public:
  long setup(unsigned events, aio_context_t* context) override {
    return or_error(::syscall(SYS_io_setup, events, context));
  }
  long submit(aio_context_t context, long count, iocb** requests) override {
    return or_error(::syscall(SYS_io_submit, context, count, requests));
  }
  long get_events(aio_context_t context, long least, long most, io_event* events) override {
    return or_error(::syscall(SYS_io_getevents, context, least, most, events, nullptr));
  }
  long destroy(aio_context_t context) override {
    return or_error(::syscall(SYS_io_destroy, context));
  }
};

}  // namespace

std::unique_ptr<AioCalls> make_system_aio_calls() { return std::make_unique<SystemAioCalls>(); }

}  // namespace dstune::host
