#include "core/device/rates/measure_rates.hpp"

#include <algorithm>
#include <cmath>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/rates/timing.hpp"

namespace dstune {
namespace {

// A product that takes so long once is not timed repeatedly, and no larger one is timed.
constexpr Seconds kLongProduct = 0.05;

Buffer space_of(Device& device, std::int64_t numel, DType dtype) {
  return make_buffer(device, MemoryCategory::temporaries, numel, dtype);
}

// The least time counts, since other work of the machine only makes a call longer.
template <class Run>
Seconds least_time_of_call(Device& device, Seconds estimate, const Run& run) {
  return times_of_call(device, estimate, run).min;
}

Seconds time_launch(Device& device, DType dtype) {
  const Buffer one = space_of(device, 1, dtype);
  const auto run = [&] { device.run(FillZero{one.tensor(dtype)}); };
  run();
  return least_time_of_call(device, 1e-5, run);
}

double copy_rate(Device& device, DType dtype, Bytes copied, Seconds launch) {
  const auto numel = static_cast<std::int64_t>(copied / size_of(dtype));
  const Buffer from = space_of(device, numel, dtype);
  const Buffer to = space_of(device, numel, dtype);
  device.run(FillZero{from.tensor(dtype)});
  const Copy copy{from.tensor(dtype), to.tensor(dtype)};
  const auto run = [&] { device.run(copy); };
  run();
  const Seconds time = least_time_of_call(device, 1e-3, run) - launch;
  return time > 0 ? 2.0 * static_cast<double>(copied) / time : kAtOnce;
}

/// Times the products of one set of shapes.
class Products {
 public:
  Products(Device& device, DType dtype, Seconds launch)
      : device_(device), dtype_(dtype), launch_(launch) {}

  /// None if the product does not fit, or if one that was not larger took long.
  std::optional<MatrixRate> time(const MatrixShape& shape) {
    const auto [rows, cols, inner] = shape;
    const double flops =
        2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(inner);
    const std::int64_t numel = rows * inner + inner * cols + rows * cols;
    const auto size = static_cast<Bytes>(numel) * size_of(dtype_);
    if (flops >= long_flops_ || !device_.memory().has_room(size)) return std::nullopt;
    const Buffer space = space_of(device_, numel, dtype_);
    const Tensor all = space.tensor(dtype_);
    device_.run(FillNormal{.out = all.slice(0, rows * inner + inner * cols), .seed = 1});
    return MatrixRate{shape, flops / time(shape, all, flops)};
  }

 private:
  Seconds time(const MatrixShape& shape, Tensor all, double flops) {
    const auto [rows, cols, inner] = shape;
    const Gemm gemm{.a = as_matrix(all.slice(0, rows * inner), rows, inner),
                    .b = as_matrix(all.slice(rows * inner, inner * cols), inner, cols),
                    .c = as_matrix(all.slice((rows + cols) * inner, rows * cols), rows, cols)};
    const auto run = [&] { device_.run(gemm); };
    run();  // the library chooses an algorithm, and takes the memory that it needs
    Seconds once = time_of_call(device_, 1, run);
    if (once >= kLongProduct) once = std::min(once, time_of_call(device_, 1, run));
    if (once < kLongProduct) {
      once = least_time_of_call(device_, once, run);
    } else {
      long_flops_ = flops;
    }
    return std::max(once - launch_, once / 2);
  }

  Device& device_;
  DType dtype_;
  Seconds launch_;
  double long_flops_ = INFINITY;
};

}  // namespace

std::optional<MachineRates> measure_rates(Device& device, Collectives& collectives, DType dtype,
                                          const std::vector<MatrixShape>& shapes,
                                          const std::vector<GroupMessage>& messages,
                                          Bytes largest) {
  MachineRates rates{
      .overlaps = device.overlaps(), .launch = time_launch(device, dtype), .dtype = dtype};
  if (!(rates.launch > 0)) return std::nullopt;
  rates.copy_bytes_per_s = copy_rate(device, dtype, largest, rates.launch);
  Products products(device, dtype, rates.launch);
  for (const MatrixShape& shape : shapes) {
    const auto rate = products.time(shape);
    if (!rate) continue;
    rates.matrices.push_back(*rate);
    rates.flops_per_s = std::max(rates.flops_per_s, rate->flops_per_s);
  }
  if (!(rates.flops_per_s > 0)) rates.flops_per_s = rates.copy_bytes_per_s;
  rates.collectives = measure_collectives(device, collectives, dtype, largest);
  rates.messages = measure_messages(device, collectives, messages, largest);
  return rates;
}

}  // namespace dstune
