#include "core/search/predict/estimated_rates.hpp"

namespace dstune {

MachineRates estimated_rates(const RunSettings& settings) {
  MachineRates rates;
  if (settings.backend == "cpu") {
    rates = {
        .flops_per_s = 30e9 * settings.threads_per_rank, .copy_bytes_per_s = 8e9, .launch = 1e-6};
    rates.collectives.fill({.latency = 20e-6, .bytes_per_s = 1.5e9});
  } else if (settings.backend == "sim") {
    rates = {.overlaps = true, .flops_per_s = 10e12, .copy_bytes_per_s = 1e12, .launch = 5e-6};
    rates.collectives.fill({.latency = 5e-6, .bytes_per_s = 25e9});
  } else {
    rates = {.overlaps = true, .flops_per_s = 300e12, .copy_bytes_per_s = 2.5e12, .launch = 4e-6};
    rates.collectives.fill({.latency = 8e-6, .bytes_per_s = 150e9});
  }
  return rates;
}

}  // namespace dstune
