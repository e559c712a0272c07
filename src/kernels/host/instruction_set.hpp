// Which vector instructions the passes use: chosen when they run, since a program is often built on
// another machine than it runs on.
#pragma once

#include <string_view>
#include <vector>

namespace dstune::host {

#ifdef __x86_64__
#define DSTUNE_FOR_AVX2 [[gnu::target("avx2,fma,f16c")]]
#define DSTUNE_FOR_AVX512 [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]]
#ifdef __clang__  // has no name for the preference
#define DSTUNE_FOR_WIDE_AVX512 DSTUNE_FOR_AVX512
#else
#define DSTUNE_FOR_WIDE_AVX512 \
  [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
#else  // instruction_sets() has only the plain one
#define DSTUNE_FOR_AVX2
#define DSTUNE_FOR_AVX512
#define DSTUNE_FOR_WIDE_AVX512
#endif

/// DeepSpeed's choice of instructions for x86. The lesser ones are what the compiler takes for any
/// processor of this kind.
enum class InstructionSet { plain, avx2, avx512 };

std::string_view name_of(InstructionSet set);

/// Those of this machine's processor, from the least to the widest; never empty.
std::vector<InstructionSet> instruction_sets();

/// The last of instruction_sets().
InstructionSet widest_instruction_set();

}  // namespace dstune::host
