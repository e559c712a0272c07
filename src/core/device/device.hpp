// The hardware under one rank, as a training step needs it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/device_reading.hpp"
#include "core/device/drive/drive_file.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/host_transfer.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/ledger/timeline.hpp"
#include "core/device/memory/host_memory.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/list.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/rates/device_peaks.hpp"
#include "core/device/stream.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

struct AttentionShape;

/// One accelerator, or one CPU process, as seen by one rank.
///
/// An operation is queued on the current stream (StreamScope; at first it is `compute`) and may
/// still run when its call returns; synchronize() waits for all of them. Used by one thread.
///
/// Operations are values (operations/): run(Gemm{...}). All of them compute in fp32 whatever the
/// storage dtype; `out` operands are overwritten unless a comment says otherwise; the tensors of
/// one operation must have matching shapes (asserted). M = rows = batch * sequence.
class Device {
 public:
  explicit Device(Bytes memory_limit) : budget_(memory_limit) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string name() const = 0;  ///< "cpu", "NVIDIA H200", ...

  /// False if memory has no contents (dry, sim): numbers that are read back are stand-ins then.
  virtual bool computes() const { return true; }

  /// True if work that repeats itself may be done once and counted many times (repeated_work.hpp).
  virtual bool folds() const { return false; }

  /// Computes the operation, or accounts for what work_of() says.
  template <class Operation>
  void run(const Operation& operation) {
    if (computes()) {
      compute(operation);
    } else {
      account(work_of(operation));
    }
  }
  /// Runs the operation as a pass of the step: its bytes are entered in the ledger.
  template <class Operation>
  void run(MemoryPass pass, const Operation& operation) {
    const Work work = work_of(operation);
    ledger_.add_pass(pass, work.read_bytes(), work.written_bytes());
    if (computes()) {
      compute(operation);
    } else {
      account(work);
    }
  }
  /// Runs the operation on the host's cores, on tensors in the host's memory, as a pass of the
  /// step; it is done when this returns. Those of DSTUNE_HOST_OPERATIONS compile.
  template <class Operation>
  void run_on_host(MemoryPass pass, const Operation& operation) {
    const Work work = work_of(operation);
    const Seconds begin = now();
    if (computes()) {
      compute_on_host(operation);
    } else {
      account_on_host(work);
    }
    ledger_.add_host_pass(pass, work.read_bytes(), work.written_bytes(), now() - begin);
  }
  /// The same where it is no part of a step.
  template <class Operation>
  void run_on_host(const Operation& operation) {
    if (computes()) {
      compute_on_host(operation);
    } else {
      account_on_host(work_of(operation));
    }
  }
  /// The threads that the host's passes may have.
  virtual int host_threads() const { return 1; }
  /// Gives the host's passes from now on at most so many of host_threads(), and at least one.
  virtual void limit_host_threads(int most) { (void)most; }
  /// Copies a tensor between the memories of device and host, in the order of the current stream.
  void transfer(const HostTransfer& copy);
  /// Gives one element on the device a value that the host knows; the host waits for the copy.
  void write_scalar(double value, Tensor scalar);

  /// A file without a name in `directory`, or in the nearest directory above it that exists, for
  /// tensors of the host's memory.
  /// @throws DriveError  if there can be no such file
  virtual std::unique_ptr<DriveFile> open_drive_file(const std::string& directory) = 0;
  /// Begins a read or write, and enters it in the ledger.
  /// @param queue  of a file of this device
  void start_on_drive(DriveQueue& queue, const DriveTransfer& transfer, TransferPurpose purpose);
  /// Makes the host wait for what was started.
  /// @throws DriveError  if the drive has failed
  void await_drive(DriveQueue& queue);

  /// The fp32 elements of scratch that Attention and its backward need.
  virtual std::int64_t attention_workspace(const AttentionShape& shape) const = 0;

  /// Copies host values into device memory, or back; synchronous.
  virtual void write(std::span<const float> values, Tensor out) = 0;
  virtual void read(Tensor in, std::span<float> values) = 0;
  /// The only way of a step's number to the host; DeepSpeed's host waits for it there. It counts as
  /// a host_sync(), and its transfer is entered in the ledger.
  /// @param scalar  one element
  double read_scalar(Tensor scalar, HostSync reason);

  // The functions below order work.
  Stream current_stream() const noexcept { return current_stream_; }
  /// True if streams run beside each other. Where they do not, all work is done in the order of the
  /// calls.
  virtual bool overlaps() const { return false; }
  /// True if memory may be in flight: what is given back counts as active until the streams that
  /// use it too are done.
  virtual bool has_memory_in_flight() const { return overlaps(); }
  /// An event at the end of what `stream` holds now.
  Event record(Stream stream);
  /// Makes work that is queued on `stream` from now on run only after `event`.
  void wait(Stream stream, const Event& event);
  /// Makes the current stream go on only after `event`.
  void await(const Event& event) { wait(current_stream_, event); }
  /// Makes the host go on only after `event`.
  void host_wait(const Event& event);
  /// True if the host can see that `event` has passed.
  virtual bool has_passed(const Event& event) const {
    (void)event;
    return true;
  }
  /// The time when `event` passed, in seconds since an arbitrary start; to be called after
  /// synchronize().
  virtual Seconds time_of(const Event& event) const { return event.time; }
  /// Makes the host wait for everything that is queued.
  void synchronize();
  /// Keeps the host busy for `time` seconds; the device goes on with what is queued. Time passes on
  /// now(). Does nothing where there is no time (dry).
  virtual void spend_host_time(Seconds time) = 0;
  /// Makes host_event() and host_calls() take as long as `overhead` says.
  void set_host_overhead(const HostOverhead& overhead) {
    host_overhead_ = overhead;
    owed_ = 0;
  }
  const HostOverhead& host_overhead() const noexcept { return host_overhead_; }
  /// Stands for the training's host code, which would be busy here: keeps the host busy for as long
  /// as that takes, and enters the time in the ledger.
  /// @param already  the part of that time which has passed in doing the same
  void host_event(HostEvent event, Seconds already = 0);
  /// Stands for `calls` of an event that is too short to be waited for by itself: the host is kept
  /// busy for all of them together, a few at a time.
  /// @param already  as above
  void host_calls(HostEvent event, std::uint64_t calls, Seconds already = 0);
  /// Stands for `calls` ATen operators that an `event` has beside what the profile says of it:
  /// their time is entered as that event's, which is not counted.
  /// @param already  as above
  void host_operators_of(HostEvent event, std::uint64_t calls, Seconds already = 0);
  /// synchronize() where DeepSpeed's host waits. It counts as a host_event() too, and is entered in
  /// the ledger.
  void host_sync(HostSync reason);
  /// The same, but the host waits for `event` alone.
  void host_sync(HostSync reason, const Event& event);

  /// The host's clock: seconds since an arbitrary start. The sim backend returns its virtual clock,
  /// so that its results are the same on every machine.
  virtual Seconds now() const = 0;

  /// The clocks, temperature and power at this moment; none where the device does not say. It may
  /// take milliseconds and must not be called inside a step.
  virtual std::optional<DeviceReading> reading() { return std::nullopt; }

  /// The highest rates that the device reaches in `dtype`; none where nobody measures them. The
  /// first call of a process measures, which may take 100 ms: nothing may be allocated then.
  virtual std::optional<DevicePeaks> peaks(DType dtype) {
    (void)dtype;
    return std::nullopt;
  }

  /// Frees memory that is cached for reuse and not in use.
  virtual void trim() {}

  /// True if the host has waited for `event` or for what comes after it.
  bool has_waited_for(const Event& event) const noexcept;

  /// The clock that the next operation of `stream` comes after.
  const StreamClock& clock_of(Stream stream) const noexcept {
    return clocks_[static_cast<std::size_t>(stream)];
  }

  MemoryBudget& memory() noexcept { return budget_; }
  const MemoryBudget& memory() const noexcept { return budget_; }

  /// Where device and host are one memory, what tensors have of the host's counts within the
  /// device's limit too, and is part of its peaks.
  void share_memory_with_host(bool is_one) noexcept { is_one_memory_ = is_one; }
  HostMemory& host_memory() noexcept { return host_memory_; }
  const HostMemory& host_memory() const noexcept { return host_memory_; }

  /// The ledger of the optimizer step that is running.
  Ledger& ledger() noexcept { return ledger_; }
  const Ledger& ledger() const noexcept { return ledger_; }
  /// The timeline of the optimizer step that is running, where streams overlap.
  Timeline& timeline() noexcept { return timeline_; }

  /// `callback` is called now and then, inside long operations and between operations (CPU), so
  /// that a busy rank still answers; it may throw to end the experiment (ExperimentAborted).
  void on_tick(std::function<void()> callback) { tick_ = std::move(callback); }
  void tick() const {
    if (tick_) tick_();
  }

 protected:
  /// Frees what was given back while other streams used it; their work must be over. It is for the
  /// destructor of a device whose memory lives longer than the device.
  void free_all_pending() noexcept;

  /// Stands for an operation's work where computes() is false.
  virtual void account(const Work& work) { (void)work; }
  /// The same for work of the host.
  virtual void account_on_host(const Work& work) { account(work); }

 private:
  friend class Buffer;
  friend class Scalar;
  friend class StreamScope;

  /// Memory that was given back while other streams still used it, until the host sees that they
  /// are done: at an allocation or, where no time passes, at a wait.
  struct Pending {
    Allocation memory;
    std::vector<std::pair<Stream, Event>> uses;
  };

  // There is a compute(operation) for each operation; it is not called where computes() is false.
#define DSTUNE_COMPUTE(Operation) virtual void compute(const Operation& operation) = 0;
  DSTUNE_OPERATIONS(DSTUNE_COMPUTE)
#undef DSTUNE_COMPUTE
#define DSTUNE_COMPUTE_ON_HOST(Operation) \
  virtual void compute_on_host(const Operation& operation) = 0;
  DSTUNE_HOST_OPERATIONS(DSTUNE_COMPUTE_ON_HOST)
#undef DSTUNE_COMPUTE_ON_HOST

  /// Called only for memory within the budget, and where its segments are an account alone; it
  /// still throws OutOfMemoryError when the device itself is full.
  virtual void* do_allocate(MemoryCategory category, Bytes size) = 0;
  virtual void do_free(void* data, Bytes size) noexcept = 0;
  /// The same for memory of the host; here for devices that live in it. Freeing waits for copies
  /// that are still queued.
  virtual void* do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) {
    (void)tier;
    return do_allocate(category, size);
  }
  virtual void do_free_on_host(Tier tier, void* data, Bytes size) noexcept {
    (void)tier;
    do_free(data, size);
  }
  /// Queues the copy on the current stream; here for devices that live in the host's memory. The
  /// caller waits where that is asked for.
  virtual void do_transfer(const HostTransfer& copy) { run(Copy{copy.from, copy.to}); }
  /// Gives `event`, which has its clock, its time.
  virtual void do_record(Stream stream, Event& event) {
    (void)stream;
    (void)event;
  }
  virtual void do_wait(Stream stream, const Event& event) {
    (void)stream;
    (void)event;
  }
  virtual void do_host_wait(const Event& event) { (void)event; }
  virtual void do_synchronize() {}
  /// Reads one element after `end`, the end of the current stream; that is one wait where the copy
  /// is queued behind it.
  virtual float do_read_scalar(Tensor scalar, const Event& end);

  void note_transfer(const HostTransfer& copy);
  template <class Wait>
  void wait_as_host(HostSync reason, Wait wait);
  template <class Wait>
  void stalling(Wait wait);
  /// Everything that is queued from now on comes after what the host has waited for.
  void join_host(const StreamClock& waited_for);
  Allocation allocate(MemoryCategory category, Bytes size);
  Allocation allocate_on_host(Tier tier, MemoryCategory category, Bytes size);
  void free_on_host(const Allocation& memory) noexcept;
  /// Waits for memory that only the end of pending uses can free, as PyTorch's allocator does;
  /// giving segments back (cudaFree) waits too.
  MemoryBudget::Block reserve(MemoryCategory category, Bytes size);
  void give_back(const Allocation& memory, const std::array<bool, kStreams>& used_on) noexcept;
  void free(const Allocation& memory) noexcept;
  /// Memory of a segment goes back with its block, which the budget is told of.
  void give_memory_back(const Allocation& memory) noexcept;
  void land(const Pending& pending) noexcept;
  void free_pending() noexcept;
  /// Called when memory of stream `home` is given back, which the streams `used_on` may still use.
  virtual void on_give_back(void* data, Stream home,
                            const std::array<bool, kStreams>& used_on) noexcept {
    (void)data;
    (void)home;
    (void)used_on;
  }
  void owe(HostEvent event, Seconds time, Seconds already);
  void spend_owed();

  MemoryBudget budget_;
  HostMemory host_memory_;
  bool is_one_memory_ = false;
  Ledger ledger_;
  Timeline timeline_;
  HostOverhead host_overhead_;
  Seconds owed_ = 0;  ///< host time of calls, which is spent when it has added up
  HostEvent owed_for_ = HostEvent::operator_forward;
  std::function<void()> tick_;
  Stream current_stream_ = Stream::compute;
  std::array<StreamClock, kStreams> clocks_{};  // by stream: what its next operation comes after
  StreamClock host_clock_{};                    // what the host has waited for
  std::vector<Pending> pending_;                // in the order in which they were given back
  std::array<std::size_t, kStreams> pending_uses_{};  // by stream: uses of pending_
};

/// While it lives, work is queued on `stream`, as within torch.cuda.stream().
class StreamScope {
 public:
  StreamScope(Device& device, Stream stream)
      : device_(device), outer_(std::exchange(device.current_stream_, stream)) {}
  ~StreamScope() { device_.current_stream_ = outer_; }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device& device_;
  Stream outer_;
};

}  // namespace dstune
