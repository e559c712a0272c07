#include "tests/support/cuda_on_host/memory_guard.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cuda_on_host/control.hpp"

namespace cuda_on_host {
namespace {

constexpr int kNoKey = -1;

/// Of this process; kNoKey before memory is first guarded, and where there are none.
std::atomic<int>& key() {
  static std::atomic<int> instance = kNoKey;
  return instance;
}

/// Says what a fault means that only the key causes; any other ends the program as without this.
void explain(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code == SEGV_PKUERR) {
    constexpr char kMessage[] =
        "cuda_on_host: the host's code touches memory of a device, which only kernels, copies and "
        "libraries may\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    std::abort();
  }
  std::signal(signal, SIG_DFL);
}

/// Whether there is a key now. No thread has access to it yet: Linux begins so.
bool take_key() {
  static const bool has_key = [] {
    const int taken = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (taken < 0) return false;
    struct sigaction action {};
    action.sa_sigaction = &explain;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    key() = taken;
    return true;
  }();
  return has_key;
}

bool guard_as_environment_says() {
  if (std::getenv("CUDA_ON_HOST_GUARD") == nullptr) return false;
  if (take_key()) return true;
  std::fputs("cuda_on_host: memory is not guarded, as there are no protection keys\n", stderr);
  return false;
}

std::atomic<bool>& guards() {
  static std::atomic<bool> on = guard_as_environment_says();
  return on;
}

std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

bool guard_memory(bool on) {
  guards() = on && take_key();
  return guards() == on;
}

bool guards_memory() { return guards(); }

void* take_guarded(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, in_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (open_pages(memory, in_pages(bytes))) return memory;
  give_back_guarded(memory, bytes);
  return nullptr;
}

void give_back_guarded(void* memory, std::size_t bytes) noexcept {
  munmap(memory, in_pages(bytes));
}

bool open_pages(void* begin, std::size_t bytes) {
  constexpr int kAll = PROT_READ | PROT_WRITE;
  const int error =
      guards_memory() ? pkey_mprotect(begin, bytes, kAll, key()) : mprotect(begin, bytes, kAll);
  return error == 0;
}

RunsAs::RunsAs(Side side) : key_(key().load(std::memory_order_relaxed)) {
  if (key_ == kNoKey) return;
  before_ = pkey_get(key_);
  pkey_set(key_, side == Side::device ? 0U : unsigned{PKEY_DISABLE_ACCESS});
}

RunsAs::~RunsAs() {
  if (key_ != kNoKey) pkey_set(key_, static_cast<unsigned>(before_));
}

}  // namespace cuda_on_host
