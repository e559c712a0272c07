// Threads of the program's own that no signal interrupts.
#pragma once

#include <csignal>

#include <pthread.h>

namespace dstune::host {

/// While it lives, the calling thread takes no signals: they are for the thread that was there
/// before. New threads inherit this mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace dstune::host
