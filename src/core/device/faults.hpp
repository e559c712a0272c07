// The errors that a backend throws when its hardware is of no more use, or cannot be believed.
#pragma once

#include "core/base/error.hpp"

namespace dstune {

/// The device, or what this process has on it, can do nothing more until the process starts anew: a
/// sticky error, a communicator that cannot be aborted. Whoever throws it can still be destroyed.
/// The rank is retired, the run goes on.
class DeviceLostError : public Error {
 public:
  using Error::Error;
};

/// A collective of known values gave wrong ones: what the group trains is nothing. Ends the run.
class WrongSumsError : public Error {
 public:
  using Error::Error;
};

}  // namespace dstune
