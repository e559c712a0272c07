#include "mpi/lifeline/sentinel.hpp"

#include <chrono>
#include <csignal>
#include <utility>

namespace dstune {

Sentinel::Watch::Watch(Sentinel& sentinel, Check check) : sentinel_(&sentinel) {
  const std::lock_guard lock(sentinel.mutex_);
  check_ = sentinel.checks_.insert(sentinel.checks_.end(), std::move(check));
}

Sentinel::Watch::~Watch() {
  if (sentinel_ == nullptr) return;
  const std::lock_guard lock(sentinel_->mutex_);
  sentinel_->checks_.erase(check_);
}

Sentinel::Sentinel(Seconds every, Leave leave) : every_(every), leave_(std::move(leave)) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits this mask
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Sentinel::~Sentinel() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Sentinel::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    look();
    changed_.wait_for(lock, std::chrono::duration<Seconds>(every_), [this] { return over_; });
  }
}

void Sentinel::look() {
  for (const auto& check : checks_) {
    if (const auto departure = check()) leave_(*departure);
  }
}

}  // namespace dstune
