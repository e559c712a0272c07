#include "core/train/ledger.hpp"

#include <algorithm>
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

/// The line for which `is_it` holds, made from `fresh` if there is none.
template <class Line, class IsIt>
Line& line_of(std::vector<Line>& lines, const Line& fresh, IsIt is_it) {
  const auto found = std::find_if(lines.begin(), lines.end(), is_it);
  return found == lines.end() ? lines.emplace_back(fresh) : *found;
}

}  // namespace

void Ledger::clear() { *this = Ledger(); }

void Ledger::add(const CollectiveLine& call, std::uint64_t calls) {
  CollectiveLine fresh = call;
  fresh.calls = fresh.elements = fresh.bytes = 0;
  fresh.wire_bytes = fresh.exposed = fresh.overlapped = 0;
  CollectiveLine& line =
      line_of(collectives_, fresh, [&](const auto& other) { return key(other) == key(call); });
  line.calls += calls;
  line.elements += call.elements;
  line.bytes += call.bytes;
  line.wire_bytes += wire_bytes(call.kind, call.bytes, call.ranks);
  line.exposed += call.exposed;
  line.overlapped += call.overlapped;
}

void Ledger::add_pass(Pass pass, Bytes read, Bytes written) {
  PassLine& line = line_of(passes_, {pass}, [&](const auto& other) { return other.pass == pass; });
  ++line.calls;
  line.read += read;
  line.written += written;
}

void Ledger::add_sync(HostSync reason, Seconds time) {
  SyncLine& line =
      line_of(syncs_, {reason}, [&](const auto& other) { return other.reason == reason; });
  ++line.calls;
  line.time += time;
}

void Ledger::add_transfer(Transfer transfer, Bytes bytes) {
  TransferLine& line = line_of(transfers_, {transfer},
                               [&](const auto& other) { return other.transfer == transfer; });
  ++line.calls;
  line.bytes += bytes;
}

void Ledger::add_host(HostEvent event, Seconds time) {
  HostLine& line = line_of(host_, {event}, [&](const auto& other) { return other.event == event; });
  ++line.calls;
  line.time += time;
}

void Ledger::note_live(std::int64_t elements) {
  peak_live_elements_ = std::max(peak_live_elements_, elements);
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
  Seconds time = 0;
  for (const CollectiveLine& line : collectives_) time += line.exposed + line.overlapped;
  return time;
}

Seconds Ledger::host_time() const {
  Seconds time = 0;
  for (const HostLine& line : host_) time += line.time;
  return time;
}

bool Ledger::same_work(const Ledger& other) const {
  const auto same_call = [](const auto& a, const auto& b) { return work(a) == work(b); };
  const auto same_sync = [](const auto& a, const auto& b) {
    return a.reason == b.reason && a.calls == b.calls;
  };
  const auto same_event = [](const auto& a, const auto& b) {
    return a.event == b.event && a.calls == b.calls;
  };
  return std::equal(collectives_.begin(), collectives_.end(), other.collectives_.begin(),
                    other.collectives_.end(), same_call) &&
         std::equal(syncs_.begin(), syncs_.end(), other.syncs_.begin(), other.syncs_.end(),
                    same_sync) &&
         std::equal(host_.begin(), host_.end(), other.host_.begin(), other.host_.end(),
                    same_event) &&
         passes_ == other.passes_ && transfers_ == other.transfers_ &&
         peak_live_elements_ == other.peak_live_elements_;
}

}  // namespace dstune
