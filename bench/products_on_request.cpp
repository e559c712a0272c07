// Matrix products of the CPU backend, each when it is asked for: bench/products_beside_torch.py has
// PyTorch's in between.
//
// usage: products_on_request THREADS
// A line of standard input is a product, "fp32|bf16 NN|NT|TN M N K", answered by the seconds that
// it took: wall time and processor time. Before the first line it says who multiplies; the variable
// DSTUNE_CPU_PRODUCTS decides. Exit code 2: it cannot run.

#include <exception>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <time.h>

#include "core/base/text.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/blas.hpp"
#include "kernels/cpu/products/choose_products.hpp"

namespace dstune {
namespace {

constexpr Bytes kEnough = Bytes{16} << 30U;

Seconds clock(clockid_t which) {
  timespec time{};
  clock_gettime(which, &time);
  return static_cast<Seconds>(time.tv_sec) + static_cast<Seconds>(time.tv_nsec) * 1e-9;
}

/// A product and its operands, which stay from request to request.
class Case {
 public:
  Case(Device& device, const std::string& line) {
    std::istringstream words(line);
    std::string type;
    std::string order;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    if (!(words >> type >> order >> m >> n >> k) || order.size() != 2) {
      throw std::invalid_argument(concat("no product: ", line));
    }
    const DType dtype = type == "bf16" ? DType::bf16 : DType::fp32;
    const auto matrix = [&](std::int64_t rows, std::int64_t cols, bool is_transposed) {
      if (is_transposed) std::swap(rows, cols);
      buffers_.push_back(make_buffer(device, MemoryCategory::activations, rows * cols, dtype));
      device.run(FillConstant{buffers_.back().tensor(dtype), 0.5});
      return as_matrix(buffers_.back().tensor(dtype), rows, cols);
    };
    op_.transpose_a = order[0] == 'T' ? Transpose::yes : Transpose::no;
    op_.transpose_b = order[1] == 'T' ? Transpose::yes : Transpose::no;
    op_.a = matrix(m, k, order[0] == 'T');
    op_.b = matrix(k, n, order[1] == 'T');
    op_.c = matrix(m, n, false);
  }

  const Gemm& op() const { return op_; }

 private:
  std::vector<Buffer> buffers_;
  Gemm op_;
};

void serve(int threads) {
  cpu::set_blas_threads(threads);
  cpu::take_blas_memory();
  const auto types = cpu::choose_products(cpu::read_product_choice(), threads);
  cpu::CpuDevice device(kEnough);
  device.products().use_onednn(types, threads);
  std::cout << "fp32: " << (types.fp32 ? "oneDNN" : "BLAS")
            << ", bf16: " << (types.bf16 ? "oneDNN" : "BLAS in fp32") << std::endl;
  std::map<std::string, Case> cases;
  for (std::string line; std::getline(std::cin, line);) {
    const Case& product = cases.try_emplace(line, device, line).first->second;
    const Seconds wall = clock(CLOCK_MONOTONIC);
    const Seconds processor = clock(CLOCK_PROCESS_CPUTIME_ID);
    device.run(product.op());
    std::cout << clock(CLOCK_MONOTONIC) - wall << " " << clock(CLOCK_PROCESS_CPUTIME_ID) - processor
              << std::endl;
  }
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: products_on_request THREADS\n";
    return 2;
  }
  try {
    dstune::serve(std::stoi(argv[1]));
    return 0;
  } catch (const std::exception& fault) {
    std::cerr << "products_on_request: " << fault.what() << "\n";
    return 2;
  }
}
