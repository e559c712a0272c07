// The errors that a backend throws when its hardware can no longer be used, or cannot be believed.
#pragma once

#include "core/base/error.hpp"

namespace dstune {

/// The device, or what this process has on it, can do nothing more until the process starts anew,
/// because of a sticky error or of a communicator that cannot be aborted. The object that throws it
/// can still be destroyed. The rank is retired, and the run goes on.
class DeviceLostError : public Error {
 public:
  using Error::Error;
};

/// A collective of known values gave wrong ones: what the group trains is worthless. It ends the
/// run.
class WrongSumsError : public Error {
 public:
  using Error::Error;
};

}  // namespace dstune
