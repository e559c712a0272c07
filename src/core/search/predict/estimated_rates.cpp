#include "core/search/predict/estimated_rates.hpp"

#include "core/device/backend_list.hpp"

namespace dstune {

MachineRates estimated_rates(const RunSettings& settings) {
  const EstimatedRates estimated = traits_of_backend(settings.backend).rates;
  MachineRates rates{.overlaps = estimated.overlaps,
                     .flops_per_s = estimated.flops_per_s +
                                    estimated.flops_per_s_per_thread * settings.threads_per_rank,
                     .copy_bytes_per_s = estimated.copy_bytes_per_s,
                     .launch = estimated.launch};
  rates.collectives.fill(
      {.latency = estimated.collective_latency, .bytes_per_s = estimated.collective_bytes_per_s});
  return rates;
}

}  // namespace dstune
