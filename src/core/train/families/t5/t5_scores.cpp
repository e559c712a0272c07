#include "core/train/families/t5/t5_scores.hpp"

#include <cstddef>

namespace dstune::t5 {

Matrices heads_of_sequence(const Call& call, const layers::Workspace& work, const Buffer& rows,
                           std::int64_t index) {
  const std::int64_t elements = work.sequence_length * call.width();
  auto* const data = static_cast<std::byte*>(rows.data()) +
                     index * elements * static_cast<std::int64_t>(size_of(work.dtype));
  return {{data, work.sequence_length, call.head_size, work.dtype, call.width()}, call.head_size};
}

void multiply(Device& device, const Matrices& a, Transpose transpose_a, const Matrices& b,
              Transpose transpose_b, const Matrices& c, std::int64_t count) {
  device.run(Gemm{.transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .a = a.first,
                  .b = b.first,
                  .c = c.first,
                  .batch = {.count = count, .a_step = a.step, .b_step = b.step, .c_step = c.step}});
}

}  // namespace dstune::t5
