// The rows of bench_gpu_kernels, by family.
#pragma once

#include <cstdint>

#include "bench/gpu/stopwatch.hpp"
#include "bench/gpu/verdicts.hpp"
#include "core/device/device.hpp"

namespace dstune::bench {

struct Setting {
  Device& device;
  Stopwatch& stopwatch;
  Verdicts& verdicts;
  std::int64_t sequences = 8;  ///< of `sequence` tokens
  std::int64_t sequence = 1024;
  std::int64_t divisor = 1;  ///< of every size of a model, for a trial on a slow device
};

/// The three products of every linear layer of gpt2-xl and llama-3.2-1b in bf16, beside cuBLASLt.
void add_products(Setting& setting);
/// Kernels that memory bounds, beside a copy of as many bytes.
void add_passes(Setting& setting);
/// Attention forward and backward, beside cuDNN; and our own kernels, where the device prefers
/// cuDNN's.
void add_attention(Setting& setting);

}  // namespace dstune::bench
