// File systems of a test's own: mounts that only one thread sees, and that end with it.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>

#include <sched.h>
#include <sys/mount.h>

namespace dstune::host::testing_support {

/// Runs `work` on a thread whose mounts are its own.
/// @returns why that is not allowed here (it takes root), or ""
inline std::string with_own_mounts(const std::function<void()>& work) {
  std::string why;
  std::exception_ptr fault;
  std::thread([&] {
    const bool is_own = ::unshare(CLONE_NEWNS) == 0 &&
                        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!is_own) {
      why = "no mounts of one's own here";
      return;
    }
    try {
      work();
    } catch (...) {
      fault = std::current_exception();
    }
  }).join();
  if (fault) std::rethrow_exception(fault);
  return why;
}

}  // namespace dstune::host::testing_support
