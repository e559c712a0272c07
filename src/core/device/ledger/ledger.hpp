// The ledger of one optimizer step on one rank: every collective, pass, wait and transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/ledger/collective_kind.hpp"
#include "core/device/memory/tier.hpp"
#include "core/device/stream.hpp"

namespace dstune {

/// The purpose of a collective.
enum class Purpose {
  gradients,   ///< the average of gradients
  parameters,  ///< gathers of sharded parameters
  persistent,  ///< stage 3: gathers after the update of what stays gathered
  scales,      ///< the scales of quantised gradients and parameters, beside their values
  norm,        ///< the norm of gradients
  overflow,    ///< the inf/NaN flag
  other,       ///< not part of a step: initialisation, tests
};

constexpr std::size_t kPurposes = 7;

/// A memory-bound pass of the step over parameters or gradients (docs/deepspeed-step.md, "Passes
/// over gradients" and "The update"). The model's own kernels are not counted as passes.
enum class MemoryPass {
  accumulate,       ///< adds an earlier micro-step's gradient
  bucket_copy,      ///< copies a gradient into the bucket
  flatten,          ///< joins several tensors into one message, or takes them out of it
  average,          ///< divides by the number of ranks, or applies factors of the loss scale
  message_cast,     ///< casts to and from the communication dtype
  partition_copy,   ///< copies what this rank owns out of the message
  overflow_check,   ///< searches inf and NaN
  norm,             ///< sums up squares
  master_gradient,  ///< flattens and casts gradients for the optimizer
  unscale,          ///< undoes the loss scale, and clips
  update,           ///< the optimizer's update
  master_cast,      ///< casts the fp32 master into the model dtype
  gather_pack,      ///< packs shards into one message
  gather_unpack,    ///< takes full tensors out of it
  zero_gradients,   ///< BF16 optimizer: zeroes .grad, and the fp32 sums
  quantize,         ///< ZeRO++: makes int8 or int4 of weights or gradients, after a cast
  dequantize,       ///< ZeRO++: the way back
};

constexpr std::size_t kPasses = 17;

/// Why the host waits for the device.
enum class HostSync {
  timer,             ///< DeepSpeed's throughput timer: start and end of every micro-step
  overflow,          ///< reads the inf/NaN flag
  norm,              ///< reads a norm
  reduction,         ///< the end of backward waits for the last reduction
  parameters,        ///< stage 3: before a module (one rank), after persistent gathers
  offload_copy,      ///< the copies of gradients to the host, before the next of them or the update
  offload_overflow,  ///< reads whether one tensor's gradient has inf or NaN
  offload_norm,      ///< reads the norm of the gradient of a tensor or, in stage 3, of a sub-group
                     ///< of them; in stages 1 and 2 also their sum over the ranks
  blocking_copy,     ///< a copy between device and host that the host waits for
  drive,             ///< what was started of a drive's reads and writes
};

constexpr std::size_t kHostSyncs = 10;

enum class Transfer { host_to_device, device_to_host, nvme_read, nvme_write };

constexpr std::size_t kTransfers = 4;

/// What is copied between device and host, or read and written on a drive.
enum class TransferPurpose {
  scalar,          ///< a norm, a flag, a loss
  gradient,        ///< averaged gradients of this rank's partition, in fp32, for the update
  gradient_sum,    ///< sums of gradients over micro-steps, on the way to the host and back
  update,          ///< updated parameters, on the way to where they live
  gradient_shard,  ///< stage 3: a rank's averaged gradients and their sums, both ways
  parameter,       ///< stage 3: shards that live on the host, on the way to a gather
  state,           ///< master weights and the optimizer's state, between drive and host
};

constexpr std::size_t kTransferPurposes = 7;

std::string_view name_of(Purpose purpose);
std::string_view name_of(MemoryPass pass);
std::string_view name_of(HostSync reason);
std::string_view name_of(Transfer transfer);
std::string_view name_of(TransferPurpose purpose);
std::string_view name_of(Stream stream);

/// The calls of one kind, for one purpose, on one stream, in one group. Elements and bytes are
/// those of the full messages, as in CollectiveCount.
struct CollectiveLine {
  Purpose purpose = Purpose::other;
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::fp32;
  Stream stream = Stream::compute;
  int ranks = 1;  ///< size of its group: the experiment's, or a part of that
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  Bytes bytes = 0;
  double wire_bytes = 0;   ///< bytes that this rank sent, see wire_bytes()
  Seconds exposed = 0;     ///< time in which the compute stream waited for it
  Seconds overlapped = 0;  ///< time beside computation: always 0 on a CPU, which does one at a time
  Seconds added = 0;       ///< waited after it on a CPU, since the library of the training would
                           ///< have taken so much longer (library_time); exposed, and not in it
  std::uint64_t pipelined = 0;  ///< how many of the calls are PipelinedCalls

  bool operator==(const CollectiveLine&) const = default;
};

struct PassLine {
  MemoryPass pass = MemoryPass::update;
  std::uint64_t calls = 0;
  Bytes read = 0;
  Bytes written = 0;

  bool operator==(const PassLine&) const = default;
};

/// The same on the host's cores, where an offloaded optimizer has them.
struct HostPassLine {
  MemoryPass pass = MemoryPass::update;
  std::uint64_t calls = 0;
  Bytes read = 0;
  Bytes written = 0;
  Seconds time = 0;

  bool operator==(const HostPassLine&) const = default;
};

struct SyncLine {
  HostSync reason = HostSync::timer;
  std::uint64_t calls = 0;
  Seconds time = 0;

  bool operator==(const SyncLine&) const = default;
};

/// The copies of one kind on one stream; or the reads or writes of one kind, which are on none, and
/// which the host does not wait for one by one.
struct TransferLine {
  Transfer transfer = Transfer::device_to_host;
  TransferPurpose purpose = TransferPurpose::scalar;
  Tier tier = Tier::pageable;  ///< of the host's side; nvme: a drive's
  bool is_blocking = true;     ///< the host waits for it because it is asked to
  Stream stream = Stream::compute;
  std::uint64_t calls = 0;
  Bytes bytes = 0;

  bool operator==(const TransferLine&) const = default;
};

/// Time that stands for the training's host code; it is not part of `SyncLine::time`.
struct HostLine {
  HostEvent event = HostEvent::gradient_hook;
  std::uint64_t calls = 0;
  Seconds time = 0;  ///< calls times the profile's time: what was asked for, not measured
  Seconds idle = 0;  ///< what of it the compute stream had nothing to do; 0 on a CPU, which is
                     ///< busy, and in what earlier versions measured

  bool operator==(const HostLine&) const = default;
};

/// A few lines of sums, which are made as the step runs; they are cheap enough to be always on.
/// Lines stand in the order of their first entries.
class Ledger {
 public:
  void clear();

  /// Adds a message; `call` says everything but `calls`, and `wire_bytes` is computed.
  /// @param calls  0: the message goes with the call before it, and is not `pipelined`
  void add(const CollectiveLine& call, std::uint64_t calls = 1);
  void add_pass(MemoryPass pass, Bytes read, Bytes written);
  void add_sync(HostSync reason, Seconds time);
  void add_host_pass(MemoryPass pass, Bytes read, Bytes written, Seconds time);
  /// Adds one copy of `copy.bytes`.
  void add_transfer(const TransferLine& copy);
  /// @param time  of all calls together
  void add_host(HostEvent event, Seconds time, std::uint64_t calls = 1);
  /// Adds time that was waited after a matrix product or attention on a CPU, since the library of
  /// the training would have taken so much longer (ProductRate).
  void add_library_wait(Seconds time);
  /// Adds idle time to the line of `event`, which must be there.
  void add_idle(HostEvent event, Seconds idle);
  /// Says that another kernel than PyTorch's ran, and what is known of the difference.
  void note_stand_in(const std::string& text);
  /// Says how many elements of full parameters exist at this moment (stage 3).
  void note_live(std::int64_t elements);

  const std::vector<CollectiveLine>& collectives() const noexcept { return collectives_; }
  const std::vector<PassLine>& passes() const noexcept { return passes_; }
  const std::vector<HostPassLine>& host_passes() const noexcept { return host_passes_; }
  const std::vector<SyncLine>& syncs() const noexcept { return syncs_; }
  const std::vector<TransferLine>& transfers() const noexcept { return transfers_; }
  const std::vector<HostLine>& host() const noexcept { return host_; }
  /// Each sentence once.
  const std::vector<std::string>& stand_ins() const noexcept { return stand_ins_; }
  std::int64_t peak_live_elements() const noexcept { return peak_live_elements_; }

  /// The entries that were added since `before`, an earlier state of this ledger; the result has
  /// this ledger's peak.
  Ledger since(const Ledger& before) const;
  /// Adds `work`, a result of since() of this ledger, `times` times. Sums that overflow stay at the
  /// largest number; sums of doubles are exact but for their rounding.
  void repeat(const Ledger& work, std::uint64_t times);
  /// From now on each entry counts as if it had been added `times` times, as with repeat().
  /// @returns the number until now, which is 1 at first
  std::uint64_t count_each(std::uint64_t times) noexcept { return std::exchange(times_, times); }

  /// Sums of the collectives by kind, over all groups.
  CollectiveCounts counts() const;
  /// Seconds inside collectives, and after them (CollectiveLine::added).
  Seconds communication_time() const;
  /// Seconds inside collectives that the computation waited for.
  Seconds exposed_time() const;
  /// Seconds that were added after collectives.
  Seconds added_time() const;
  /// Seconds that were waited where the training's library computes more slowly: products,
  /// attention, and what else the profile has the time of.
  Seconds library_wait() const noexcept { return library_wait_; }
  /// Seconds that stand for the training's host code.
  Seconds host_time() const;
  /// Seconds of host_time() in which the compute stream had nothing to do.
  Seconds idle_time() const;

  /// True if everything but the times is equal: the same step, wherever it ran.
  bool same_work(const Ledger& other) const;
  bool operator==(const Ledger&) const = default;

  /// The JSON form that is sent and written to the journal; units are in the keys.
  json::object to_json() const;
  /// Inverse of to_json(), exact.
  /// @throws std::exception  if `object` is no ledger
  static Ledger from_json(const json::object& object);

 private:
  std::vector<CollectiveLine> collectives_;
  std::vector<PassLine> passes_;
  std::vector<HostPassLine> host_passes_;
  std::vector<SyncLine> syncs_;
  std::vector<TransferLine> transfers_;
  std::vector<HostLine> host_;
  Seconds library_wait_ = 0;
  std::vector<std::string> stand_ins_;
  std::int64_t peak_live_elements_ = 0;
  std::uint64_t times_ = 1;
};

}  // namespace dstune
