// A whole training step of GPT-2 on one rank, over the BLAS's own speed for the same products.
//
// usage: bench_step [micro-batch=4] [sequence=128] [rounds=3]; set OPENBLAS_NUM_THREADS=1

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/train/families/families.hpp"
#include "core/train/training_step.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/blas.hpp"

namespace dstune {
namespace {

constexpr Bytes kEnough = Bytes{16} << 30U;

Seconds wall_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// m x k times k x n, `count` times in a step's forward; backward has two more of the same size.
struct Shape {
  std::int64_t m, k, n, count;

  double flops() const { return 2.0 * static_cast<double>(m * k * n); }
};

std::vector<Shape> forward_products(const ModelSpec& model, std::int64_t rows) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t f = model.inner_size;
  const std::int64_t layers = model.num_layers;
  return {{rows, h, 3 * h, layers},
          {rows, h, h, layers},
          {rows, h, f, layers},
          {rows, f, h, layers},
          {rows, h, model.vocab_size, 1}};
}

/// Forward, gradient by the input, gradient by the weight.
std::vector<cpu::Product> products_of(const Shape& shape) {
  cpu::Product forward;
  forward.m = shape.m;
  forward.n = shape.n;
  forward.k = shape.k;
  cpu::Product by_input = forward;
  by_input.transpose_b = Transpose::yes;
  by_input.n = shape.k;
  by_input.k = shape.n;
  cpu::Product by_weight = forward;
  by_weight.transpose_a = Transpose::yes;
  by_weight.m = shape.k;
  by_weight.k = shape.m;
  return {forward, by_input, by_weight};
}

/// Seconds that the BLAS takes for the matrix products of a step.
Seconds time_products(const std::vector<Shape>& shapes) {
  Seconds total = 0;
  for (const Shape& shape : shapes) {
    for (const cpu::Product& product : products_of(shape)) {
      const auto elements = [](std::int64_t rows, std::int64_t cols) {
        return std::vector<float>(static_cast<std::size_t>(rows * cols), 0.5F);
      };
      const bool a_transposed = product.transpose_a == Transpose::yes;
      const bool b_transposed = product.transpose_b == Transpose::yes;
      auto a = elements(product.m, product.k);
      auto b = elements(product.k, product.n);
      auto c = elements(product.m, product.n);
      const Seconds begin = wall_now();
      cpu::sgemm(product, {a.data(), a_transposed ? product.m : product.k},
                 {b.data(), b_transposed ? product.k : product.n}, {c.data(), product.n});
      total += (wall_now() - begin) * static_cast<double>(shape.count);
    }
  }
  return total;
}

double product_flops(const std::vector<Shape>& shapes) {
  double total = 0;
  for (const Shape& shape : shapes) total += 3 * shape.flops() * static_cast<double>(shape.count);
  return total;
}

int argument(int argc, char** argv, int index, int fallback) {
  return argc > index ? std::stoi(argv[index]) : fallback;
}

void run(int micro_batch, int sequence, int rounds) {
  cpu::set_blas_threads(1);
  RunSettings settings;
  settings.sequence_length = sequence;
  StepConfig config;
  config.micro_batch = micro_batch;
  config.optimizer.client = false;
  cpu::CpuDevice device(kEnough);
  DryCollectives alone(device, 0, 1);
  TrainingStep step(settings, config, device, alone);
  const auto shapes = forward_products(settings.model, std::int64_t{micro_batch} * sequence);
  const double step_flops =
      training_flops(settings.model, std::int64_t{micro_batch} * sequence, sequence);
  step.run();
  std::vector<double> ratios;
  std::cout << "| round | step (s) | forward | backward | optimizer | GFLOP/s | sgemm GFLOP/s | "
               "ratio |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (int round = 1; round <= rounds; ++round) {
    const StepReport report = step.run();
    const double sgemm = product_flops(shapes) / time_products(shapes);
    const double speed = step_flops / report.total;
    ratios.push_back(speed / sgemm);
    std::cout << concat("| ", round, " | ", fixed(report.total, 2), " | ", fixed(report.forward, 2),
                        " | ", fixed(report.backward, 2), " | ", fixed(report.optimizer, 2), " | ",
                        fixed(speed / 1e9, 1), " | ", fixed(sgemm / 1e9, 1), " | ",
                        fixed(ratios.back(), 2), " |")
              << std::endl;
  }
  std::cout << "median ratio " << fixed(summarize(ratios).median, 2) << "\n";
}

}  // namespace
}  // namespace dstune

int main(int argc, char** argv) {
  dstune::run(dstune::argument(argc, argv, 1, 4), dstune::argument(argc, argv, 2, 128),
              dstune::argument(argc, argv, 3, 3));
  return EXIT_SUCCESS;
}
