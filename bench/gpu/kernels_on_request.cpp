// Operations of models' layers, each when it is asked for: bench/gpu/kernels_beside_torch.py has
// PyTorch's beside them.
//
// usage: kernels_on_request [BACKEND=cuda]
// A line of standard input is an operation, "NAME TYPE SIZES...", answered by the median seconds of
// device time that its forward and its backward take with cold caches; 0 for what it has not. Exit
// code 2: it cannot run, or a line is none.

#include <exception>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/gpu/choose_device.hpp"
#include "bench/gpu/layer_operations.hpp"
#include "bench/gpu/stopwatch.hpp"
#include "core/base/text.hpp"

namespace dstune::bench {
namespace {

LayerRequest read(const std::string& line) {
  std::istringstream words(line);
  LayerRequest request;
  std::string type;
  if (!(words >> request.name >> type)) throw std::invalid_argument(concat("no request: ", line));
  if (type != "fp32" && type != "bf16" && type != "fp16") {
    throw std::invalid_argument(concat("no type: ", type));
  }
  request.dtype = type == "fp32" ? DType::fp32 : type == "bf16" ? DType::bf16 : DType::fp16;
  for (double size = 0; words >> size;) request.sizes.push_back(size);
  return request;
}

void serve(Device& device) {
  Stopwatch stopwatch(device);
  std::cout << device.name() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Arena arena(device);
    const LayerPasses passes = make_layer(device, arena, read(line));
    passes.forward();  // whose results backward needs
    const Seconds forward = stopwatch.times({passes.forward})[0];
    Seconds backward = 0;
    if (passes.backward) backward = stopwatch.times({passes.backward})[0];
    std::cout << forward << " " << backward << std::endl;
  }
}

}  // namespace
}  // namespace dstune::bench

int main(int argc, char** argv) {
  try {
    const dstune::bench::ChosenDevice chosen(argc > 1 ? argv[1] : "cuda", 1);
    dstune::bench::serve(chosen.device());
    return 0;
  } catch (const std::exception& fault) {
    std::cerr << "kernels_on_request: " << fault.what() << "\n";
    return 2;
  }
}
