#include "mpi/lifeline/signals.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <string_view>

#include <unistd.h>

#include "core/base/files/exit_code.hpp"

namespace dstune {

namespace {

constexpr std::array kStops = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
struct Crash {
  int signal;
  std::string_view message;
};

constexpr std::array<Crash, 5> kCrashes = {
    {{SIGSEGV, "error: rank 0 crashed (SIGSEGV): a bug of dstune-mpi\n"},
     {SIGABRT, "error: rank 0 crashed (SIGABRT): a bug of dstune-mpi\n"},
     {SIGBUS, "error: rank 0 crashed (SIGBUS): a bug, or a file that was cut off under it\n"},
     {SIGFPE, "error: rank 0 crashed (SIGFPE): a bug of dstune-mpi\n"},
     {SIGILL, "error: rank 0 crashed (SIGILL): built for another processor?\n"}}};

// These are globals because a signal handler can reach nothing else.
std::atomic<bool> stop_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "must be safe in a signal handler");
int crash_code = 0;
bool crash_quietly = false;
std::array<struct sigaction, kCrashes.size()> former{};

void set_stop_flag(int /*signal*/) { stop_flag.store(true); }

void say(std::string_view text) { (void)!write(STDERR_FILENO, text.data(), text.size()); }

void on_crash(int signal) {
  leave_exit_code(crash_code);
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i].signal != signal) continue;
    say(kCrashes[i].message);
    sigaction(signal, &former[i], nullptr);
  }
  if (crash_quietly) _exit(0);
  raise(signal);  // runs the handler that was there before, once this one returns
}

void handle(int signal, void (*handler)(int), struct sigaction* old = nullptr) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, old);
}

}  // namespace

void watch_stop_signals() {
  for (const int signal : kStops) handle(signal, set_stop_flag);
}

void ignore_stop_signals() {
  for (const int signal : kStops) handle(signal, SIG_IGN);
}

bool stop_requested() noexcept { return stop_flag.load(); }

void watch_crashes(int exit_code, bool quietly) {
  crash_code = exit_code;
  crash_quietly = quietly;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    handle(kCrashes[i].signal, on_crash, &former[i]);
  }
}

}  // namespace dstune
