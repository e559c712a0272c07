// Functions that run with the widest vector instructions of this processor, as PyTorch's kernels
// do.
#pragma once

#include "kernels/cpu/instructions.hpp"
#include "kernels/host/instruction_set.hpp"

namespace dstune::cpu {

template <class F, class... Arguments>
[[gnu::noinline]] void call_compiled(F f, Arguments... arguments) {
  f(arguments...);
}

template <class F, class... Arguments>
DSTUNE_FOR_WIDE_AVX512 [[gnu::noinline, gnu::flatten]] void call_wide(F f, Arguments... arguments) {
  f(arguments...);
}

/// f(arguments...) as a function of its own: inlined into the loops below it would be duplicated,
/// and g++ vectorises only one of the copies. `f` is a copy, so what it captures by value stays in
/// registers. What is inlined into `f` has AVX-512 where uses_avx512().
template <class F, class... Arguments>
void call_apart(F f, Arguments... arguments) {
  if (kUsesAvx512) {
    call_wide(f, arguments...);
  } else {
    call_compiled(f, arguments...);
  }
}

}  // namespace dstune::cpu
