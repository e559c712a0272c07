#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/device/operations/optimizers.hpp"
#include "kernels/element_types.hpp"
#include "kernels/host/chunks.hpp"
#include "kernels/host/passes.hpp"

namespace dstune::host {

void compute(Threads& threads, const FindInfOrNan& op, const PassOptions& options) {
  std::atomic<bool> found = false;
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    for_chunks(threads, options, op.in.numel, static_cast<std::int64_t>(sizeof(T)),
               [in, &found](std::int64_t begin, std::int64_t end) {
                 if (!found && any_special(in + begin, end - begin)) found = true;
               });
  });
  if (found) *elements<std::uint8_t>(op.flag) = 1;
}

}  // namespace dstune::host
