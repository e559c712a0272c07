#include "core/train/rehearsal_device.hpp"

#include <bit>
#include <cstring>
#include <string_view>

#include "core/train/dry_run_memory.hpp"

namespace dstune {
namespace {

/// Kinds of events; they keep equal numbers of different kinds from looking alike.
enum class Kind : std::uint64_t {
  allocate = 1,
  free,
  record,
  wait,
  host_wait,
  synchronize,
  host_time,
  give_back,
  operation,
  message,
  drive,
  drive_wait
};

std::uint64_t of(Kind kind, std::uint64_t detail) {
  return static_cast<std::uint64_t>(kind) << 56U ^ detail;
}

template <class Enumeration>
std::uint64_t number_of(Enumeration value) {
  return static_cast<std::uint64_t>(value);
}

/// A number for an operation's name; names differ in their length, their beginning or their end.
std::uint64_t number_of_name(std::string_view name) {
  constexpr std::size_t kPart = sizeof(std::uint64_t);
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (name.size() < kPart) {
    for (const char letter : name) begin = begin << 8U | static_cast<unsigned char>(letter);
  } else {
    std::memcpy(&begin, name.data(), kPart);
    std::memcpy(&end, name.data() + name.size() - kPart, kPart);
  }
  return begin ^ std::rotl(end, 29) ^ name.size();
}

// An event is identified by the work that it comes after, which is its clock.
void add_clock(Walk& walk, const StreamClock& clock) {
  for (const std::uint64_t count : clock) walk.add(count);
}

}  // namespace

Seconds RehearsalDevice::time_on_drive(const DriveTransfer& transfer) {
  walk_.add(of(Kind::drive, number_of(transfer.direction)));
  walk_.add(transfer.tensor.size());
  return 0;
}

// When the host waits is what pipelines change.
void RehearsalDevice::wait_until(Seconds /*end*/) { walk_.add(of(Kind::drive_wait, 0)); }

std::int64_t RehearsalDevice::attention_workspace(const AttentionShape& shape) const {
  const auto ask = [&] { return DryDevice::attention_workspace(shape); };
  return known_ == nullptr ? ask() : known_->attention_workspace(shape, ask);
}

void RehearsalDevice::account(const Work& work) {
  walk_.add(of(Kind::operation, number_of(current_stream())));
  walk_.add(number_of_name(work.operation));
  walk_.add(std::bit_cast<std::uint64_t>(work.flops));
  for (const Operand& operand : work.reads) walk_.add(operand.bytes);
  for (const Operand& operand : work.writes) walk_.add(operand.bytes);
}

void* RehearsalDevice::do_allocate(MemoryCategory category, Bytes size) {
  walk_.add(of(Kind::allocate, number_of(category) << 8U ^ number_of(current_stream())));
  walk_.add(size);
  return DryDevice::do_allocate(category, size);
}

void RehearsalDevice::do_free(void* data, Bytes size) noexcept {
  walk_.add(of(Kind::free, size));
  DryDevice::do_free(data, size);
}

void RehearsalDevice::do_record(Stream stream, Event& /*event*/) {
  walk_.add(of(Kind::record, number_of(stream)));
}

void RehearsalDevice::do_wait(Stream stream, const Event& event) {
  walk_.add(of(Kind::wait, number_of(stream)));
  add_clock(walk_, event.after);
}

void RehearsalDevice::do_host_wait(const Event& event) {
  walk_.add(of(Kind::host_wait, 0));
  add_clock(walk_, event.after);
}

void RehearsalDevice::do_synchronize() { walk_.add(of(Kind::synchronize, 0)); }

void RehearsalDevice::spend_host_time(Seconds time) {
  walk_.add(of(Kind::host_time, 0));
  walk_.add(std::bit_cast<std::uint64_t>(time));
}

void RehearsalDevice::on_give_back(void* /*data*/, Stream home,
                                   const std::array<bool, kStreams>& used_on) noexcept {
  std::uint64_t streams = number_of(home);
  for (const bool used : used_on) streams = streams * 2 + (used ? 1 : 0);
  walk_.add(of(Kind::give_back, streams));
}

void RehearsalCollectives::touch(CollectiveKind kind, Tensor in, Tensor out) {
  walk_.add(of(Kind::message, number_of(kind)));
  walk_.add(number_of(in.dtype));
  walk_.add(in.size());
  walk_.add(out.size());
  walk_.add(static_cast<std::uint64_t>(size()));
}

std::unique_ptr<Collectives> RehearsalCollectives::do_sub_group(const std::vector<int>& ranks,
                                                                int own) {
  return std::make_unique<RehearsalCollectives>(device(), own, static_cast<int>(ranks.size()),
                                                walk_);
}

}  // namespace dstune
