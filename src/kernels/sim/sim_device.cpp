#include "kernels/sim/sim_device.hpp"

#include <algorithm>

namespace dstune::sim {

void SimDevice::account(const Work& work) {
  const Bytes traffic = work.read_bytes() + work.written_bytes();
  const Seconds arithmetic = work.flops / speed_.flops_per_s;
  const Seconds memory = static_cast<double>(traffic) / speed_.bytes_per_s;
  advance(speed_.latency + std::max(arithmetic, memory));
}

}  // namespace dstune::sim
