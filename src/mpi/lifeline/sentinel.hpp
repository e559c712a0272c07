// The watchdog of a process: a thread that ends it when its main thread cannot: it waits inside
// MPI, or in a kernel.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/units.hpp"

namespace dstune {

/// Why a process must end.
struct Departure {
  std::string reason;
  int exit_code = 1;
};

/// Looks at something without MPI; an answer ends the process.
using Check = std::function<std::optional<Departure>()>;

class Sentinel {
 public:
  /// Ends the process; one that returns is for tests.
  using Leave = std::function<void(const Departure&)>;

  /// Looks every `every` seconds, on a thread of its own that takes no signals.
  Sentinel(Seconds every, Leave leave);
  ~Sentinel();
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;

  /// A check lasts as long as its Watch, which must not outlive the sentinel.
  class [[nodiscard]] Watch {
   public:
    Watch(Watch&& other) noexcept
        : sentinel_(std::exchange(other.sentinel_, nullptr)), check_(other.check_) {}
    Watch& operator=(Watch&& other) = delete;
    ~Watch();

   private:
    friend class Sentinel;
    Watch(Sentinel& sentinel, Check check);

    Sentinel* sentinel_;
    std::list<Check>::iterator check_;
  };

  Watch watch(Check check) { return Watch(*this, std::move(check)); }

 private:
  void run();
  void look();

  Seconds every_;
  Leave leave_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::list<Check> checks_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace dstune
