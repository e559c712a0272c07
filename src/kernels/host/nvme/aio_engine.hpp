// Reads and writes files as DeepSpeed's aio op does (docs/nvme.md, "The engine").
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/device/drive/aio_settings.hpp"
#include "kernels/host/nvme/aio_calls.hpp"
#include "kernels/host/nvme/aio_context.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

/// A handle of DeepSpeed's: intra_op_parallelism threads, each with a context of its own, of which
/// each has an equal part of every operation. Operations run in the order in which they were
/// started, while the thread that started them does something else. Used by one thread at a time.
class AioEngine {
 public:
  /// @returns a FileError if the kernel refuses a queue
  /// @throws std::invalid_argument  if a number of the settings is < 1, or the block's size is no
  ///                                multiple of kDirectAlignment
  /// @throws std::system_error      if the system gives no more threads
  static OrFileError<std::unique_ptr<AioEngine>> make(
      const AioSettings& settings, std::unique_ptr<AioCalls> calls = make_system_aio_calls());
  AioEngine(const AioEngine&) = delete;
  AioEngine& operator=(const AioEngine&) = delete;
  /// Waits for what is under way, and gives up what was started and has not begun.
  ~AioEngine();

  const AioSettings& settings() const { return settings_; }

  /// Begins to read or write, and returns. File and buffer must stay until wait() has returned.
  void start(const FileTransfer& transfer);

  /// Returns when everything that was started has ended.
  /// @returns the fault of the first operation that has one; of its threads' that of the least
  ///          offset
  std::optional<FileError> wait();
  /// Waits no longer than `time`.
  /// @returns whether everything that was started has ended, so that wait() returns at once
  bool ends_within(std::chrono::milliseconds time);

 private:
  struct Part {
    FileTransfer transfer;
    std::uint64_t operation = 0;  ///< its number
  };
  struct Fault {
    std::uint64_t operation = 0;
    FileError error;
  };
  struct Worker {
    explicit Worker(AioContext&& its_context) { context.emplace(std::move(its_context)); }
    std::optional<AioContext> context;
    std::deque<Part> parts = {};
  };

  AioEngine(const AioSettings& settings, std::unique_ptr<AioCalls> calls,
            std::vector<Worker> workers);
  void serve(Worker& worker);
  void keep(std::uint64_t operation, FileError&& error);

  AioSettings settings_;
  std::unique_ptr<AioCalls> calls_;
  std::vector<Worker> workers_;
  std::mutex mutex_;  ///< of all below, and of the workers' parts
  std::condition_variable part_came_;
  std::condition_variable all_ended_;
  std::uint64_t started_ = 0;  ///< operations
  std::size_t left_ = 0;       ///< parts that have not ended
  std::optional<Fault> fault_;
  bool ends_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace dstune::host
