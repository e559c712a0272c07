#include "core/train/device.hpp"

namespace dstune {

void Device::host_event(HostEvent event) {
  const Seconds time = host_overhead_.at(event);
  if (time > 0) spend_host_time(time);
  ledger_.add_host(event, time);
}

void Device::host_sync(HostSync reason) {
  // A module's own wait is part of its hook: a profile cannot tell them apart.
  if (reason != HostSync::parameters) host_event(HostEvent::synchronization);
  const Seconds begin = now();
  synchronize();
  ledger_.add_sync(reason, now() - begin);
}

}  // namespace dstune
