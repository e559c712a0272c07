#include "core/device/dry/clocked_device.hpp"

#include <memory>

namespace dstune {

void ClockedDevice::advance(Seconds time, std::size_t part) {
  if (!overlaps()) {
    advance_host(time, part);
    return;
  }
  Clock& own = clock(current_stream());
  own.wait_for(host_);
  own.add(time, part);
}

void ClockedDevice::do_record(Stream stream, Event& event) {
  const Clock& own = clock(stream);
  const Clock& later = own.time < host_.time ? host_ : own;
  event.time = later.time;
  event.handle = std::make_shared<const Clock>(later);
}

void ClockedDevice::do_wait(Stream stream, const Event& event) {
  if (event.handle) clock(stream).wait_for(*static_cast<const Clock*>(event.handle.get()));
}

void ClockedDevice::do_host_wait(const Event& event) {
  if (event.handle) host_.wait_for(*static_cast<const Clock*>(event.handle.get()));
}

void ClockedDevice::do_synchronize() {
  for (const Clock& stream : clocks_) host_.wait_for(stream);
}

}  // namespace dstune
