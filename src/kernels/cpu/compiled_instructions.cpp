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
#ifdef __AVX512F__
    .avx512f = true,
#endif
#ifdef __AVX512BW__
    .avx512bw = true,
#endif
#ifdef __AVX512VNNI__
    .avx512vnni = true,
#endif
#ifdef __AVX512BF16__
    .avx512bf16 = true,
#endif
};

}  // namespace dstune::cpu
