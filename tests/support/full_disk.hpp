// A disk that is full: while this lives, no file of the process grows beyond `limit` bytes.
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace dstune::testing_support {

class FullDisk {
 public:
  explicit FullDisk(unsigned long limit) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);  // write() then says EFBIG
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    rlimit lowered = old_limit_;
    lowered.rlim_cur = limit;
    ::setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int) = nullptr;
};

}  // namespace dstune::testing_support
