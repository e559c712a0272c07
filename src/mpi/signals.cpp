#include "mpi/signals.hpp"

#include <atomic>
#include <csignal>

namespace dstune {

namespace {

// A signal handler has nothing but globals to write to.
std::atomic<bool> stop_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "must be safe in a signal handler");

void set_stop_flag(int /*signal*/) { stop_flag.store(true); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void watch_stop_signals() {
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGCONT}) handle(signal, set_stop_flag);
}

void ignore_stop_signals() { handle(SIGUSR1, SIG_IGN); }

bool stop_requested() noexcept { return stop_flag.load(); }

}  // namespace dstune
