// Data alone, so that nothing of this file runs: it is compiled as the kernels are.
#include "kernels/cpu/instructions.hpp"

namespace dstune::cpu {

constinit const CompiledInstructions kCompiledInstructions = {
#ifdef __AVX2__
    .avx2 = true,
#endif
#ifdef __FMA__
    .fma = true,
#endif
};

}  // namespace dstune::cpu
