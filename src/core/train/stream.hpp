// The queues of a device that a step uses.
#pragma once

namespace dstune {

/// CUDA has three of them; a CPU runs all at once, in call order.
enum class Stream { compute, reduction, gather };

}  // namespace dstune
