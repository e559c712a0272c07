// The device of a backend, for a program of one process.
#pragma once

#include <memory>
#include <string>

#include "core/device/backend.hpp"

namespace dstune::bench {

/// With nearly all of the memory that is free.
class ChosenDevice {
 public:
  /// @throws Error  if there is no such backend here; the message says why
  ChosenDevice(const std::string& backend, int threads);

  Device& device() const { return *device_; }
  Bytes memory() const { return device_->memory().limit(); }

 private:
  std::unique_ptr<Backend> backend_;
  Device* device_;
};

}  // namespace dstune::bench
