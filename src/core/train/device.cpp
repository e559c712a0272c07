#include "core/train/device.hpp"

namespace dstune {

void Device::host_sync(HostSync reason) {
  const Seconds begin = now();
  synchronize();
  ledger_.add_sync(reason, now() - begin);
}

}  // namespace dstune
