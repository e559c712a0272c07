#include "core/device/device.hpp"

#include <algorithm>
#include <utility>

namespace dstune {

namespace {

void join(StreamClock& clock, const StreamClock& other) {
  std::transform(clock.begin(), clock.end(), other.begin(), clock.begin(),
                 [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
}

HostTransfer of_scalar(Transfer direction, Tensor scalar) {
  return {scalar, scalar, direction, TransferPurpose::scalar, Tier::pageable, true};
}

std::size_t place_of(Stream stream) { return static_cast<std::size_t>(stream); }

}  // namespace

Event Device::record(Stream stream) {
  const auto place = static_cast<std::size_t>(stream);
  ++clocks_[place][place];
  Event event;
  event.after = clocks_[place];
  do_record(stream, event);
  return event;
}

void Device::wait(Stream stream, const Event& event) {
  StreamClock& clock = clocks_[static_cast<std::size_t>(stream)];
  StreamClock joined = clock;
  join(joined, event.after);
  if (joined == clock) return;  // it comes after that event anyway
  clock = joined;
  if (stream == Stream::compute) {
    stalling([&] { do_wait(stream, event); });
  } else {
    do_wait(stream, event);
  }
}

void Device::host_wait(const Event& event) {
  stalling([&] { do_host_wait(event); });
  join_host(event.after);
}

void Device::join_host(const StreamClock& waited_for) {
  join(host_clock_, waited_for);
  for (StreamClock& clock : clocks_) join(clock, waited_for);
  if (!overlaps()) free_pending();
}

bool Device::has_waited_for(const Event& event) const noexcept {
  return std::equal(event.after.begin(), event.after.end(), host_clock_.begin(),
                    [](std::uint64_t own, std::uint64_t waited) { return own <= waited; });
}

void Device::synchronize() {
  do_synchronize();
  StreamClock all{};
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    ++clocks_[stream][stream];
    join(all, clocks_[stream]);
  }
  join_host(all);
  if (overlaps()) free_pending();
}

Allocation Device::allocate(MemoryCategory category, Bytes size) {
  const MemoryBudget::Block block = reserve(category, size);
  try {
    void* data = budget_.data(block);
    if (data == nullptr) data = do_allocate(category, size);
    return {data, size, category, current_stream_, block};
  } catch (...) {
    budget_.release(category, size, block);
    throw;
  }
}

Allocation Device::allocate_on_host(Tier tier, MemoryCategory category, Bytes size) {
  host_memory_.take(tier, category, size);
  Allocation memory{nullptr, size, category, current_stream_, CachingModel::kNoBlock, tier};
  try {
    if (is_one_memory_) memory.block = reserve(category, size);
    try {
      memory.data = do_allocate_on_host(tier, category, size);
    } catch (...) {
      if (is_one_memory_) budget_.release(category, size, memory.block);
      throw;
    }
  } catch (...) {
    host_memory_.give_back(tier, size);
    throw;
  }
  return memory;
}

// Where an experiment was given up, a copy from or to it may still be queued: the device waits.
void Device::free_on_host(const Allocation& memory) noexcept {
  do_free_on_host(memory.tier, memory.data, memory.size);
  if (is_one_memory_) budget_.release(memory.category, memory.size, memory.block);
  host_memory_.give_back(memory.tier, memory.size);
}

MemoryBudget::Block Device::reserve(MemoryCategory category, Bytes size) {
  if (overlaps()) free_pending();
  if (const auto block = budget_.try_reserve(category, size, current_stream_)) return *block;
  if (!pending_.empty() || budget_.holds_unused_segments()) synchronize();
  return budget_.reserve_at_last(category, size, current_stream_);
}

void Device::give_back(const Allocation& memory,
                       const std::array<bool, kStreams>& used_on) noexcept {
  if (is_of_host(memory.tier)) return free_on_host(memory);
  on_give_back(memory.data, memory.home, used_on);
  std::vector<std::pair<Stream, Event>> uses;
  for (std::size_t place = 0; place < kStreams && has_memory_in_flight(); ++place) {
    const auto stream = static_cast<Stream>(place);
    if (used_on[place]) uses.emplace_back(stream, record(stream));
  }
  if (uses.empty()) return free(memory);
  if (overlaps()) {
    budget_.release(memory.category, memory.size);
    pending_.push_back({memory, std::move(uses)});
  } else {  // nothing can use it any more, and only its bytes count
    free(memory);
    pending_.push_back({Allocation{nullptr, memory.size}, std::move(uses)});
  }
  for (const auto& [stream, end] : pending_.back().uses) ++pending_uses_[place_of(stream)];
  budget_.begin_flight(memory.size);
}

void Device::land(const Pending& pending) noexcept {
  const Allocation& memory = pending.memory;
  for (const auto& [stream, end] : pending.uses) --pending_uses_[place_of(stream)];
  if (overlaps()) give_memory_back(memory);
  budget_.end_flight(memory.size, memory.block);
}

void Device::free(const Allocation& memory) noexcept {
  give_memory_back(memory);
  budget_.release(memory.category, memory.size, memory.block);
}

void Device::give_memory_back(const Allocation& memory) noexcept {
  if (budget_.data(memory.block) == nullptr) do_free(memory.data, memory.size);
}

// It takes the host about as long to ask a driver as to launch: where one event of a stream has not
// passed, those after it are not asked for; and nothing is looked at where all streams are behind,
// since a forward of stage 3 may have each parameter pending.
void Device::free_pending() noexcept {
  std::array<bool, kStreams> is_behind{};
  const auto has_ended = [&](const std::pair<Stream, Event>& use) {
    bool& behind = is_behind[place_of(use.first)];
    behind = behind || !has_passed(use.second);
    return !behind;
  };
  const auto some_may_have_ended = [&] {
    return !std::equal(is_behind.begin(), is_behind.end(), pending_uses_.begin(),
                       [](bool behind, std::size_t uses) { return behind || uses == 0; });
  };
  auto next = pending_.begin();
  auto kept = next;
  for (; next != pending_.end() && some_may_have_ended(); ++next) {
    if (std::all_of(next->uses.begin(), next->uses.end(), has_ended)) {
      land(*next);
    } else {
      if (kept != next) *kept = std::move(*next);
      ++kept;
    }
  }
  if (kept != next) pending_.erase(std::move(next, pending_.end(), kept), pending_.end());
}

void Device::free_all_pending() noexcept {
  for (const Pending& pending : pending_) land(pending);
  pending_.clear();
}

void Device::host_event(HostEvent event, Seconds already) {
  const Seconds time = host_overhead_.at(event);
  ledger_.add_host(event, time);
  const Seconds rest = time - already;
  if (rest <= 0) return;
  if (!overlaps()) return spend_host_time(rest);
  // Nothing is queued in between: the compute stream passes both events at once, unless it has run
  // dry before the host is done.
  const Event before = record(Stream::compute);
  spend_host_time(rest);
  timeline_.add_host(event, before, record(Stream::compute));
}

// Short of that, what it takes to look at a clock would be more than the time itself.
constexpr Seconds kLeastSpent = 50e-6;

void Device::host_calls(HostEvent event, std::uint64_t calls, Seconds already) {
  const Seconds time = static_cast<double>(calls) * host_overhead_.at(event);
  if (calls > 0) ledger_.add_host(event, time, calls);
  owe(event, time, already);
}

void Device::host_operators_of(HostEvent event, std::uint64_t calls, Seconds already) {
  const Seconds time = static_cast<double>(calls) * host_overhead_.at(HostEvent::operator_forward);
  ledger_.add_host(event, time, 0);
  owe(event, time, already);
}

// A launch that takes longer than PyTorch's calls is made up for by those that the host still owes.
void Device::owe(HostEvent event, Seconds time, Seconds already) {
  owed_ = std::max(0.0, owed_ + time - already);
  if (time > 0) owed_for_ = event;
  if (owed_ >= kLeastSpent || !computes()) spend_owed();
}

// Where the device runs dry meanwhile counts for the last event of those that are paid together.
void Device::spend_owed() {
  if (owed_ <= 0) return;
  const Seconds time = std::exchange(owed_, 0);
  if (!overlaps()) return spend_host_time(time);
  const Event before = record(Stream::compute);
  spend_host_time(time);
  timeline_.add_host(owed_for_, before, record(Stream::compute));
}

void Device::host_sync(HostSync reason) {
  wait_as_host(reason, [this] { stalling([this] { synchronize(); }); });
}

void Device::host_sync(HostSync reason, const Event& event) {
  wait_as_host(reason, [&] { host_wait(event); });
}

double Device::read_scalar(Tensor scalar, HostSync reason) {
  float value = 0;
  note_transfer(of_scalar(Transfer::device_to_host, scalar));
  wait_as_host(reason, [&] {
    const Event end = record(current_stream_);
    stalling([&] { value = do_read_scalar(scalar, end); });
    join_host(end.after);
  });
  return static_cast<double>(value);
}

void Device::transfer(const HostTransfer& copy) {
  note_transfer(copy);
  do_transfer(copy);
  if (!copy.waits()) return;
  wait_as_host(HostSync::blocking_copy, [this] { host_wait(record(current_stream_)); });
}

void Device::write_scalar(double value, Tensor scalar) {
  note_transfer(of_scalar(Transfer::host_to_device, scalar));
  run(FillConstant{scalar, value});
  wait_as_host(HostSync::blocking_copy, [this] { host_wait(record(current_stream_)); });
}

void Device::start_on_drive(DriveQueue& queue, const DriveTransfer& transfer,
                            TransferPurpose purpose) {
  ledger_.add_transfer(
      {transfer.direction, purpose, Tier::nvme, false, Stream::compute, 0, transfer.tensor.size()});
  queue.start(transfer);
}

void Device::await_drive(DriveQueue& queue) {
  wait_as_host(HostSync::drive, [&] { stalling([&] { queue.wait(); }); });
}

void Device::note_transfer(const HostTransfer& copy) {
  ledger_.add_transfer({copy.direction, copy.purpose, copy.tier, copy.is_blocking, current_stream_,
                        0, copy.from.size()});
}

float Device::do_read_scalar(Tensor scalar, const Event& end) {
  do_host_wait(end);
  float value = 0;
  read(scalar, {&value, 1});
  return value;
}

template <class Wait>
void Device::wait_as_host(HostSync reason, Wait wait) {
  // A module's own wait is part of its hook, and the wait for a flag or a norm is part of the
  // tensors' update: a profile cannot tell them apart.
  spend_owed();  // nobody waits before he has called what is to be waited for
  if (reason == HostSync::timer || reason == HostSync::reduction) {
    host_event(HostEvent::synchronization);
  }
  const Seconds begin = now();
  wait();
  ledger_.add_sync(reason, now() - begin);
}

// The compute stream cannot run what the host cannot launch in the meantime.
template <class Wait>
void Device::stalling(Wait wait) {
  if (!overlaps()) {
    wait();
    return;
  }
  const Event before = record(Stream::compute);
  wait();
  timeline_.add_stall(before, record(Stream::compute));
}

}  // namespace dstune
