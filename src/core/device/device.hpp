// The hardware under one rank, as a training step needs it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/device_reading.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/ledger/timeline.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/device/operations/list.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/rates/device_peaks.hpp"
#include "core/device/stream.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

struct AttentionShape;

/// One accelerator, or one CPU process, as seen by one rank.
///
/// An operation is queued on the current stream (StreamScope; at first compute) and may still run
/// when its call returns; synchronize() waits for all of it. Used by one thread.
///
/// Operations are values (operations/): run(Gemm{...}). All compute in fp32 whatever the storage
/// dtype; `out` operands are overwritten unless a comment says otherwise; tensors of one operation
/// must have matching shapes (asserted). M = rows = batch * sequence.
class Device {
 public:
  explicit Device(Bytes memory_limit) : budget_(memory_limit) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string name() const = 0;  ///< "cpu", "NVIDIA H200", ...

  /// False if memory has no contents (dry, sim): numbers read back are then stand-ins.
  virtual bool computes() const { return true; }

  /// True if work that repeats itself may be done once and counted (repeated_work.hpp).
  virtual bool folds() const { return false; }

  /// Computes it, or accounts for what work_of() says.
  template <class Operation>
  void run(const Operation& operation) {
    if (computes()) {
      compute(operation);
    } else {
      account(work_of(operation));
    }
  }
  /// Runs it as a pass of the step: its bytes go into the ledger.
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
  /// fp32 elements of scratch that Attention and its backward need.
  virtual std::int64_t attention_workspace(const AttentionShape& shape) const = 0;

  /// Host values into device memory and back; synchronous.
  virtual void write(std::span<const float> values, Tensor out) = 0;
  virtual void read(Tensor in, std::span<float> values) = 0;
  /// The only way of a number of a step to the host, where DeepSpeed's host waits for it: as
  /// host_sync(), with its transfer in the ledger.
  /// @param scalar  one element
  double read_scalar(Tensor scalar, HostSync reason);

  // Order.
  Stream current_stream() const noexcept { return current_stream_; }
  /// True if streams run beside each other. Where they do not, all is done in call order.
  virtual bool overlaps() const { return false; }
  /// The end of what `stream` holds now.
  Event record(Stream stream);
  /// Work that is queued on `stream` from now on runs only after `event`.
  void wait(Stream stream, const Event& event);
  /// The current stream goes on only after `event`.
  void await(const Event& event) { wait(current_stream_, event); }
  /// The host goes on only after `event`.
  void host_wait(const Event& event);
  /// True if the host can see that `event` has passed.
  virtual bool has_passed(const Event& event) const {
    (void)event;
    return true;
  }
  /// When `event` passed, in seconds since an arbitrary start; call after synchronize().
  virtual Seconds time_of(const Event& event) const { return event.time; }
  /// The host goes on only after everything that is queued.
  void synchronize();
  /// Keeps the host busy for so long; the device goes on with what is queued. Time passes on now().
  /// Nothing where there is no time (dry).
  virtual void spend_host_time(Seconds time) = 0;
  /// From now on host_event() takes as long as `overhead` says.
  void set_host_overhead(const HostOverhead& overhead) { host_overhead_ = overhead; }
  const HostOverhead& host_overhead() const noexcept { return host_overhead_; }
  /// DeepSpeed's host code would be busy here: spends its time and goes into the ledger.
  /// @param already  of that time, what has passed in doing the same
  void host_event(HostEvent event, Seconds already = 0);
  /// synchronize() where DeepSpeed's host waits: a host_event() too; goes into the ledger.
  void host_sync(HostSync reason);
  /// The same for `event` alone.
  void host_sync(HostSync reason, const Event& event);

  /// The host's clock: seconds since an arbitrary start. The sim backend returns its virtual clock,
  /// so that its results are the same on every machine.
  virtual Seconds now() const = 0;

  /// Clocks, temperature, power of this moment; none where the device does not say. May take
  /// milliseconds: not to be called inside a step.
  virtual std::optional<DeviceReading> reading() { return std::nullopt; }

  /// The most that it does in `dtype`; none where nobody measures it. The first call of a process
  /// measures and may take 100 ms: nothing may be allocated then.
  virtual std::optional<DevicePeaks> peaks(DType dtype) {
    (void)dtype;
    return std::nullopt;
  }

  /// Frees memory that is cached for reuse but not in use.
  virtual void trim() {}

  /// The clock that the next operation of `stream` comes after.
  const StreamClock& clock_of(Stream stream) const noexcept {
    return clocks_[static_cast<std::size_t>(stream)];
  }

  MemoryBudget& memory() noexcept { return budget_; }
  const MemoryBudget& memory() const noexcept { return budget_; }

  /// The ledger of the optimizer step that runs.
  Ledger& ledger() noexcept { return ledger_; }
  const Ledger& ledger() const noexcept { return ledger_; }
  /// The timeline of the optimizer step that runs, where streams overlap.
  Timeline& timeline() noexcept { return timeline_; }

  /// Called now and then inside long operations and between operations (CPU), so that a busy rank
  /// still answers; may throw to end the experiment (ExperimentAborted).
  void on_tick(std::function<void()> callback) { tick_ = std::move(callback); }
  void tick() const {
    if (tick_) tick_();
  }

 protected:
  /// Frees what was given back while other streams used it: their work must be over. For the
  /// destructor of a device whose memory goes on living.
  void free_all_pending() noexcept;

  /// Where computes() is false: stands for an operation's work.
  virtual void account(const Work& work) { (void)work; }

 private:
  friend class Buffer;
  friend class Scalar;
  friend class StreamScope;

  /// Memory that was given back while other streams still used it.
  struct Pending {
    Allocation memory;
    std::vector<std::pair<Stream, Event>> uses;
  };

  // compute(operation) for each; not called where computes() is false.
#define DSTUNE_COMPUTE(Operation) virtual void compute(const Operation& operation) = 0;
  DSTUNE_OPERATIONS(DSTUNE_COMPUTE)
#undef DSTUNE_COMPUTE

  /// Called inside the budget only; still throws OutOfMemoryError when the device itself is full.
  virtual void* do_allocate(MemoryCategory category, Bytes size) = 0;
  virtual void do_free(void* data, Bytes size) noexcept = 0;
  /// `event` has its clock; gives it its time.
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
  /// read() of one element after `end`, the end of the current stream: one wait where the copy is
  /// queued behind it.
  virtual float do_read_scalar(Tensor scalar, const Event& end);

  template <class Wait>
  void wait_as_host(HostSync reason, Wait wait);
  template <class Wait>
  void stalling(Wait wait);
  Allocation allocate(MemoryCategory category, Bytes size);
  /// Memory that only the end of pending uses can free is waited for, as PyTorch's allocator does;
  /// giving segments back (cudaFree) waits too.
  MemoryBudget::Block reserve(MemoryCategory category, Bytes size);
  void give_back(const Allocation& memory, const std::array<bool, kStreams>& used_on) noexcept;
  void free(const Allocation& memory) noexcept;
  void free_pending() noexcept;
  /// Memory of stream `home` is given back, which the streams `used_on` may still use.
  virtual void on_give_back(void* data, Stream home,
                            const std::array<bool, kStreams>& used_on) noexcept {
    (void)data;
    (void)home;
    (void)used_on;
  }

  MemoryBudget budget_;
  Ledger ledger_;
  Timeline timeline_;
  HostOverhead host_overhead_;
  std::function<void()> tick_;
  Stream current_stream_ = Stream::compute;
  std::array<StreamClock, kStreams> clocks_{};  // by stream: what it comes after
  std::vector<Pending> pending_;                // in the order in which they were given back
};

/// Work that is queued while it lives goes to `stream`, as within torch.cuda.stream().
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
