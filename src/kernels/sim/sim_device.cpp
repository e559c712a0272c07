#include "kernels/sim/sim_device.hpp"

#include <algorithm>

namespace dstune::sim {

void SimDevice::advance(Seconds time) {
  Seconds& end = clock(current_stream());
  end = std::max(end, host_) + time;
}

void SimDevice::do_record(Stream stream, Event& event) {
  event.time = std::max(clock(stream), host_);
}

void SimDevice::do_wait(Stream stream, const Event& event) {
  clock(stream) = std::max(clock(stream), event.time);
}

void SimDevice::do_host_wait(const Event& event) { host_ = std::max(host_, event.time); }

void SimDevice::do_synchronize() {
  host_ = std::max(host_, *std::max_element(clocks_.begin(), clocks_.end()));
}

void SimDevice::account(const Work& work) {
  const Bytes traffic = work.read_bytes() + work.written_bytes();
  const Seconds arithmetic = work.flops / speed_.flops_per_s;
  const Seconds memory = static_cast<double>(traffic) / speed_.bytes_per_s;
  advance(speed_.latency + std::max(arithmetic, memory));
}

}  // namespace dstune::sim
