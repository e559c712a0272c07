// Whether this processor has the instructions that the CPU kernels were compiled with.
#pragma once

#include <span>
#include <string>

namespace dstune::cpu {

/// A set of instructions, as people name it.
struct InstructionNeed {
  const char* name = "";
  bool is_compiled_in = false;
  bool is_here = false;
};

/// What the compiler was allowed to use in the kernels.
struct CompiledInstructions {
  bool avx2 = false;
  bool fma = false;
};

extern const CompiledInstructions kCompiledInstructions;

/// The names of those that are compiled in and not here: "AVX-512F, AVX-512BW"; "" if none is.
std::string lacking(std::span<const InstructionNeed> needs);

/// The same of this build on this processor: a program that was built on another one, such as a
/// login node, would end by SIGILL. Always "" on other processors than x86.
std::string lacking_instructions();

/// Whether the kernels use AVX-512: where the processor has it, unless the environment's
/// ATEN_CPU_CAPABILITY, which PyTorch reads too, is "avx2" or "default".
/// @param capability  the variable's value, or null
bool uses_avx512(const char* capability, bool is_here);

extern const bool kUsesAvx512;

}  // namespace dstune::cpu
