// The watchdog of a process: a thread that ends the process when the main thread cannot, because it
// waits inside MPI or in a kernel.
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

/// Looks at something without calling MPI. If it returns a Departure, the process must end.
using Check = std::function<std::optional<Departure>()>;

class Sentinel {
 public:
  /// Ends the process. Only tests have one that returns.
  using Leave = std::function<void(const Departure&)>;

  /// Runs all checks every `every` seconds, on a thread of its own on which all signals are
  /// blocked.
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
  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  std::list<Check> checks_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace dstune
