// The end of communicators, whatever they do.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include <nccl.h>

#include "core/base/units.hpp"

namespace dstune::cuda {

/// Where NCCL writes a communicator, perhaps only when the call that makes it is done.
using CommunicatorCell = std::unique_ptr<ncclComm_t>;

/// The communicators whose end has begun. One thread uses it.
class EndingCommunicators {
 public:
  /// Begins ncclCommAbort of all that are not null, in order, in a thread that nobody waits for: it
  /// is known to hang, as while another process of the host keeps its communicator. What their
  /// kernels wait for ends too. No other thread may call NCCL with them.
  void add(std::vector<CommunicatorCell> communicators) noexcept;

  /// Waits until all are gone, at most `limit`; calls `meanwhile` again and again and ignores what
  /// that throws: what must end has begun to. Nobody waits for the same ones again.
  /// @returns false if it took longer
  bool wait(Seconds limit, const std::function<void()>& meanwhile) noexcept;

 private:
  std::vector<std::future<void>> ends_;
};

}  // namespace dstune::cuda
