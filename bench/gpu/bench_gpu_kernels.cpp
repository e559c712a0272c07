// How near the kernels come to the libraries and to the memory of a GPU.
//
// usage: bench_gpu_kernels [BACKEND=cuda] [trial]
//   trial  the same in small, to see that it works; its ratios say nothing
//
// Exit codes: 0 all aims are met, 1 one is missed, 2 it cannot run here.

#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "bench/gpu/choose_device.hpp"
#include "bench/gpu/rows.hpp"
#include "core/base/text.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::bench {
namespace {

int run(Device& device, bool is_trial) {
  Stopwatch stopwatch(device);
  Verdicts verdicts;
  Setting setting{.device = device, .stopwatch = stopwatch, .verdicts = verdicts};
  if (is_trial) {
    setting.sequences = 2;
    setting.sequence = 32;
    setting.divisor = 16;
  }
  std::cout << concat("Device: ", device.name(), is_trial ? ", in small: for trial only" : "")
            << std::endl;
  add_products(setting);
  add_passes(setting);
  add_attention(setting);
  return verdicts.end();
}

}  // namespace
}  // namespace dstune::bench

int main(int argc, char** argv) {
  try {
    const std::string backend = argc > 1 ? argv[1] : "cuda";
    const bool is_trial = argc > 2 && std::string(argv[2]) == "trial";
    const dstune::bench::ChosenDevice chosen(backend, 1);
    return dstune::bench::run(chosen.device(), is_trial);
  } catch (const std::exception& fault) {
    std::cout << "bench_gpu_kernels: " << fault.what() << std::endl;
    return 2;
  }
}
