#include "core/device/ledger/ledger.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dstune {

namespace {

auto key(const CollectiveLine& line) {
  return std::tie(line.purpose, line.kind, line.dtype, line.stream, line.ranks);
}

auto work(const CollectiveLine& line) {
  return std::tie(line.purpose, line.kind, line.dtype, line.stream, line.ranks, line.calls,
                  line.elements, line.bytes);
}

auto key(const TransferLine& line) {
  return std::tie(line.transfer, line.purpose, line.tier, line.is_blocking, line.stream);
}

/// The line for which `is_it` holds; it is made from `fresh` if there is none.
template <class Line, class IsIt>
Line& line_of(std::vector<Line>& lines, const Line& fresh, IsIt is_it) {
  const auto found = std::find_if(lines.begin(), lines.end(), is_it);
  return found == lines.end() ? lines.emplace_back(fresh) : *found;
}

// combine(line, other, f) calls f(sum, the other line's sum) for every sum of a line.
template <class F>
void combine(CollectiveLine& line, const CollectiveLine& other, F f) {
  f(line.calls, other.calls);
  f(line.elements, other.elements);
  f(line.bytes, other.bytes);
  f(line.wire_bytes, other.wire_bytes);
  f(line.exposed, other.exposed);
  f(line.overlapped, other.overlapped);
  f(line.added, other.added);
  f(line.pipelined, other.pipelined);
}

template <class F>
void combine(PassLine& line, const PassLine& other, F f) {
  f(line.calls, other.calls);
  f(line.read, other.read);
  f(line.written, other.written);
}

template <class F>
void combine(HostPassLine& line, const HostPassLine& other, F f) {
  f(line.calls, other.calls);
  f(line.read, other.read);
  f(line.written, other.written);
  f(line.time, other.time);
}

template <class F>
void combine(SyncLine& line, const SyncLine& other, F f) {
  f(line.calls, other.calls);
  f(line.time, other.time);
}

template <class F>
void combine(TransferLine& line, const TransferLine& other, F f) {
  f(line.calls, other.calls);
  f(line.bytes, other.bytes);
}

template <class F>
void combine(HostLine& line, const HostLine& other, F f) {
  f(line.calls, other.calls);
  f(line.time, other.time);
  f(line.idle, other.idle);
}

/// Lines never move: the lines of an earlier ledger stand at the same places in this one.
template <class Line, class F>
void combine_lines(std::vector<Line>& lines, const std::vector<Line>& others, F f) {
  for (std::size_t i = 0; i < others.size(); ++i) combine(lines[i], others[i], f);
}

void add_times(double& sum, double each, std::uint64_t times) {
  sum += each * static_cast<double>(times);
}

void add_times(std::uint64_t& sum, std::uint64_t each, std::uint64_t times) {
  std::uint64_t more = 0;
  if (__builtin_mul_overflow(each, times, &more) || __builtin_add_overflow(sum, more, &sum)) {
    sum = std::numeric_limits<std::uint64_t>::max();
  }
}

}  // namespace

void Ledger::clear() { *this = Ledger(); }

void Ledger::add(const CollectiveLine& call, std::uint64_t calls) {
  CollectiveLine fresh = call;
  fresh.calls = fresh.elements = fresh.bytes = fresh.pipelined = 0;
  fresh.wire_bytes = fresh.exposed = fresh.overlapped = fresh.added = 0;
  CollectiveLine& line =
      line_of(collectives_, fresh, [&](const auto& other) { return key(other) == key(call); });
  add_times(line.calls, calls, times_);
  add_times(line.elements, call.elements, times_);
  add_times(line.bytes, call.bytes, times_);
  add_times(line.wire_bytes, wire_bytes(call.kind, call.bytes, call.ranks), times_);
  add_times(line.exposed, call.exposed, times_);
  add_times(line.overlapped, call.overlapped, times_);
  add_times(line.added, call.added, times_);
  add_times(line.pipelined, call.pipelined, times_);
}

void Ledger::add_pass(MemoryPass pass, Bytes read, Bytes written) {
  PassLine& line = line_of(passes_, {pass}, [&](const auto& other) { return other.pass == pass; });
  add_times(line.calls, 1, times_);
  add_times(line.read, read, times_);
  add_times(line.written, written, times_);
}

void Ledger::add_sync(HostSync reason, Seconds time) {
  SyncLine& line =
      line_of(syncs_, {reason}, [&](const auto& other) { return other.reason == reason; });
  add_times(line.calls, 1, times_);
  add_times(line.time, time, times_);
}

void Ledger::add_host_pass(MemoryPass pass, Bytes read, Bytes written, Seconds time) {
  HostPassLine& line =
      line_of(host_passes_, {pass}, [&](const auto& other) { return other.pass == pass; });
  add_times(line.calls, 1, times_);
  add_times(line.read, read, times_);
  add_times(line.written, written, times_);
  add_times(line.time, time, times_);
}

void Ledger::add_transfer(const TransferLine& copy) {
  TransferLine fresh = copy;
  fresh.calls = fresh.bytes = 0;
  TransferLine& line =
      line_of(transfers_, fresh, [&](const auto& other) { return key(other) == key(copy); });
  add_times(line.calls, 1, times_);
  add_times(line.bytes, copy.bytes, times_);
}

void Ledger::add_host(HostEvent event, Seconds time, std::uint64_t calls) {
  HostLine& line = line_of(host_, {event}, [&](const auto& other) { return other.event == event; });
  add_times(line.calls, calls, times_);
  add_times(line.time, time, times_);
}

void Ledger::add_idle(HostEvent event, Seconds idle) {
  HostLine& line = line_of(host_, {event}, [&](const auto& other) { return other.event == event; });
  add_times(line.idle, idle, times_);
}

void Ledger::add_library_wait(Seconds time) { add_times(library_wait_, time, times_); }

void Ledger::note_stand_in(const std::string& text) {
  if (std::ranges::find(stand_ins_, text) == stand_ins_.end()) stand_ins_.push_back(text);
}

void Ledger::note_live(std::int64_t elements) {
  peak_live_elements_ = std::max(peak_live_elements_, elements);
}

Ledger Ledger::since(const Ledger& before) const {
  const auto subtract = [](auto& sum, const auto& earlier) { sum -= earlier; };
  Ledger rest = *this;
  combine_lines(rest.collectives_, before.collectives_, subtract);
  combine_lines(rest.passes_, before.passes_, subtract);
  combine_lines(rest.host_passes_, before.host_passes_, subtract);
  combine_lines(rest.syncs_, before.syncs_, subtract);
  combine_lines(rest.transfers_, before.transfers_, subtract);
  combine_lines(rest.host_, before.host_, subtract);
  subtract(rest.library_wait_, before.library_wait_);
  return rest;
}

void Ledger::repeat(const Ledger& work, std::uint64_t times) {
  const auto add = [times](auto& sum, const auto& each) { add_times(sum, each, times); };
  combine_lines(collectives_, work.collectives_, add);
  combine_lines(passes_, work.passes_, add);
  combine_lines(host_passes_, work.host_passes_, add);
  combine_lines(syncs_, work.syncs_, add);
  combine_lines(transfers_, work.transfers_, add);
  combine_lines(host_, work.host_, add);
  add(library_wait_, work.library_wait_);
}

CollectiveCounts Ledger::counts() const {
  CollectiveCounts counts{};
  for (const CollectiveLine& line : collectives_) {
    CollectiveCount& count = counts[static_cast<std::size_t>(line.kind)];
    count.calls += line.calls;
    count.elements += line.elements;
    count.bytes += line.bytes;
  }
  return counts;
}

Seconds Ledger::communication_time() const {
  Seconds time = exposed_time();
  for (const CollectiveLine& line : collectives_) time += line.overlapped;
  return time;
}

Seconds Ledger::exposed_time() const {
  Seconds time = added_time();
  for (const CollectiveLine& line : collectives_) time += line.exposed;
  return time;
}

Seconds Ledger::added_time() const {
  Seconds time = 0;
  for (const CollectiveLine& line : collectives_) time += line.added;
  return time;
}

Seconds Ledger::host_time() const {
  Seconds time = 0;
  for (const HostLine& line : host_) time += line.time;
  return time;
}

Seconds Ledger::idle_time() const {
  Seconds time = 0;
  for (const HostLine& line : host_) time += line.idle;
  return time;
}

bool Ledger::same_work(const Ledger& other) const {
  const auto same_call = [](const auto& a, const auto& b) { return work(a) == work(b); };
  const auto same_pass = [](const auto& a, const auto& b) {
    return std::tie(a.pass, a.calls, a.read, a.written) ==
           std::tie(b.pass, b.calls, b.read, b.written);
  };
  const auto same_sync = [](const auto& a, const auto& b) {
    return a.reason == b.reason && a.calls == b.calls;
  };
  const auto same_event = [](const auto& a, const auto& b) {
    return a.event == b.event && a.calls == b.calls;
  };
  return std::equal(collectives_.begin(), collectives_.end(), other.collectives_.begin(),
                    other.collectives_.end(), same_call) &&
         std::equal(host_passes_.begin(), host_passes_.end(), other.host_passes_.begin(),
                    other.host_passes_.end(), same_pass) &&
         std::equal(syncs_.begin(), syncs_.end(), other.syncs_.begin(), other.syncs_.end(),
                    same_sync) &&
         std::equal(host_.begin(), host_.end(), other.host_.begin(), other.host_.end(),
                    same_event) &&
         passes_ == other.passes_ && transfers_ == other.transfers_ &&
         peak_live_elements_ == other.peak_live_elements_;
}

}  // namespace dstune
