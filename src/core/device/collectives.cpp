#include "core/device/collectives.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

CollectiveLine line_for(CollectiveKind kind, Purpose purpose, Tensor whole) {
  CollectiveLine line;
  line.purpose = purpose;
  line.kind = kind;
  line.dtype = whole.dtype;
  line.elements = static_cast<std::uint64_t>(whole.numel);
  line.bytes = whole.size();
  return line;
}

/// The same call, with nothing counted yet.
CollectiveLine uncounted(CollectiveLine line) {
  line.elements = line.bytes = line.pipelined = 0;
  return line;
}

/// Makes a call that took `taken` end no sooner than with the library of the training. Does nothing
/// where streams run beside each other, since the library is the training's own there.
/// @returns how long this host has waited for that
///
/// The time is counted from this rank's own start: a rank that came early has waited for the last
/// one already, and the last one, which is on the critical path, pays all of it
/// (docs/decisions/library-time.md).
Seconds wait_as_library(Device& device, const CollectiveLine& call, bool has_latency,
                        Seconds taken) {
  if (device.overlaps() || call.purpose == Purpose::other) return 0;
  const Seconds rest = library_time(device.host_overhead(), call.kind, call.dtype, call.bytes,
                                    call.ranks, has_latency) -
                       taken;
  if (rest <= 0) return 0;
  device.spend_host_time(rest);
  return rest;
}

}  // namespace

template <class Call>
Event Collectives::counted(CollectiveLine line, Call call) {
  line.ranks = size_;
  line.stream = device_->current_stream();
  const bool launches = !launched_;
  line.pipelined = launches && pipelines_ ? 1 : 0;
  if (launches) begin_launch(line.purpose);
  if (coalesces_ && launches) launched_ = uncounted(line);
  const Seconds begin = device_->now();
  Event done = coalesces_ ? run_coalesced(call) : run(line, call);
  const Seconds time = device_->now() - begin;
  launch_time_ += time;
  if (!device_->overlaps()) line.exposed = time;
  line.added = wait_as_library(*device_, line, launches && !pipelines_, time);
  device_->ledger().add(line, launches ? 1 : 0);
  return done;
}

// A profile's cost of a collective contains its launch, and this host has a launch of its own. How
// long that takes is known only afterwards, and time spent then would hide behind the collective;
// so the time of the launch before is subtracted. Where streams do not overlap, a call contains the
// transfer as well, and nothing is subtracted.
void Collectives::begin_launch(Purpose purpose) {
  const Seconds already = std::exchange(launch_time_, 0);
  if (purpose == Purpose::other) return;
  const HostEvent event = pipelines_ ? HostEvent::pipelined_collective : HostEvent::collective;
  device_->host_event(event, device_->overlaps() ? already : 0);
}

template <class Call>
Event Collectives::run(const CollectiveLine& line, Call call) {
  const Event ready = device_->record(device_->current_stream());
  const StreamScope scope(*device_, Stream::communication);
  device_->wait(Stream::communication, ready);
  const Event begin = device_->record(Stream::communication);
  call();
  Event end = device_->record(Stream::communication);
  if (device_->overlaps()) device_->timeline().add_call(uncounted(line), begin, end);
  return end;
}

// Runs one of several coalesced calls. Only the call that ends them has an event that counts.
template <class Call>
Event Collectives::run_coalesced(Call call) {
  const Event ready = device_->record(device_->current_stream());
  const StreamScope scope(*device_, Stream::communication);
  device_->wait(Stream::communication, ready);
  call();
  return {};
}

void Collectives::begin_coalescing() {
  coalesces_ = true;
  const StreamScope scope(*device_, Stream::communication);
  coalesced_since_ = device_->record(Stream::communication);
  do_begin_coalescing();
}

Event Collectives::end_coalescing() {
  const StreamScope scope(*device_, Stream::communication);
  const Seconds begin = device_->now();
  do_end_coalescing();
  launch_time_ += device_->now() - begin;
  Event end = device_->record(Stream::communication);
  if (launched_ && device_->overlaps()) {
    device_->timeline().add_call(*launched_, coalesced_since_, end);
  }
  forget_coalescing();
  return end;
}

Event Collectives::all_reduce(Tensor inout, ReduceOp op, Purpose purpose) {
  return counted(line_for(CollectiveKind::all_reduce, purpose, inout),
                 [&] { do_all_reduce(inout, op); });
}

Event Collectives::reduce(Tensor inout, ReduceOp op, int root, Purpose purpose) {
  return counted(line_for(CollectiveKind::reduce, purpose, inout),
                 [&] { do_reduce(inout, op, root); });
}

Event Collectives::reduce_scatter(Tensor in, Tensor out, ReduceOp op, Purpose purpose) {
  return counted(line_for(CollectiveKind::reduce_scatter, purpose, in),
                 [&] { do_reduce_scatter(in, out, op); });
}

Event Collectives::all_gather(Tensor in, Tensor out, Purpose purpose) {
  return counted(line_for(CollectiveKind::all_gather, purpose, out),
                 [&] { do_all_gather(in, out); });
}

Event Collectives::broadcast(Tensor inout, int root, Purpose purpose) {
  return counted(line_for(CollectiveKind::broadcast, purpose, inout),
                 [&] { do_broadcast(inout, root); });
}

Event Collectives::all_to_all(Tensor in, Tensor out, Purpose purpose) {
  return counted(line_for(CollectiveKind::all_to_all, purpose, in),
                 [&] { do_all_to_all(in, out); });
}

std::unique_ptr<Collectives> Collectives::sub_group(const std::vector<int>& ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  const bool known =
      std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank >= 0 && rank < size_; });
  if (own == ranks.end() || !known) {
    throw std::invalid_argument(concat("Collectives: no part of ", size_, " ranks with ", rank_));
  }
  return do_sub_group(ranks, static_cast<int>(own - ranks.begin()));
}

}  // namespace dstune
