#include "core/device/measure_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/linear_algebra.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/timing.hpp"

namespace dstune {
namespace {

constexpr std::array<Bytes, 4> kMessages{Bytes{1} << 14U, Bytes{1} << 18U, Bytes{1} << 21U,
                                         Bytes{1} << 24U};
constexpr Bytes kCopied = Bytes{1} << 24U;
// What takes so long once is not timed again and again, nor is what is larger.
constexpr Seconds kLongProduct = 0.05;
// Where nothing is sent, and JSON knows no infinity.
constexpr double kAtOnce = 1e18;

Buffer space_of(Device& device, std::int64_t numel, DType dtype) {
  return make_buffer(device, MemoryCategory::temporaries, numel, dtype);
}

Seconds time_launch(Device& device, DType dtype) {
  const Buffer one = space_of(device, 1, dtype);
  const auto run = [&] { device.run(FillZero{one.tensor(dtype)}); };
  run();
  return median_time_of_call(device, 1e-5, run);
}

double copy_rate(Device& device, DType dtype, Seconds launch) {
  const auto numel = static_cast<std::int64_t>(kCopied / size_of(dtype));
  const Buffer from = space_of(device, numel, dtype);
  const Buffer to = space_of(device, numel, dtype);
  device.run(FillZero{from.tensor(dtype)});
  const Copy copy{from.tensor(dtype), to.tensor(dtype)};
  const auto run = [&] { device.run(copy); };
  run();
  const Seconds time = median_time_of_call(device, 1e-3, run) - launch;
  return time > 0 ? 2.0 * static_cast<double>(kCopied) / time : kAtOnce;
}

/// Times products of one set of shapes.
class Products {
 public:
  Products(Device& device, DType dtype, Seconds launch)
      : device_(device), dtype_(dtype), launch_(launch) {}

  /// None if it does not fit, or one that was not larger took long.
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
    run();  // the library chooses, and takes what it needs
    Seconds once = time_of_call(device_, 1, run);
    if (once < kLongProduct) {
      once = median_time_of_call(device_, once, run);
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

/// One call of each kind, with messages of numel elements, a multiple of the ranks.
class Messages {
 public:
  Messages(Device& device, Collectives& collectives, DType dtype, Bytes largest)
      : device_(device),
        collectives_(collectives),
        dtype_(dtype),
        first_(space_of(device, numel_of(largest), dtype)),
        second_(space_of(device, numel_of(largest), dtype)) {
    device.run(FillZero{first_.tensor(dtype)});
    device.run(FillZero{second_.tensor(dtype)});
  }

  std::int64_t numel_of(Bytes message) const {
    const auto ranks = static_cast<Bytes>(collectives_.size());
    const Bytes part = std::max<Bytes>(message / size_of(dtype_) / ranks, 1);
    return static_cast<std::int64_t>(part * ranks);
  }

  /// The shortest of a few, each on its own, so that all ranks begin together: what else the
  /// machine does only makes them longer.
  Seconds time(CollectiveKind kind, std::int64_t numel) {
    const auto run = [&] { device_.await(call(kind, numel)); };
    run();
    std::array<Seconds, 5> times{};
    for (Seconds& time : times) time = time_of_call(device_, 1, run);
    return *std::min_element(times.begin(), times.end());
  }

 private:
  Event call(CollectiveKind kind, std::int64_t numel) {
    const Tensor whole = first_.tensor(dtype_).slice(0, numel);
    const Tensor part = second_.tensor(dtype_).slice(0, numel / collectives_.size());
    switch (kind) {
      case CollectiveKind::all_reduce:
        return collectives_.all_reduce(whole, ReduceOp::sum, Purpose::other);
      case CollectiveKind::reduce:
        return collectives_.reduce(whole, ReduceOp::sum, 0, Purpose::other);
      case CollectiveKind::reduce_scatter:
        return collectives_.reduce_scatter(whole, part, ReduceOp::sum, Purpose::other);
      case CollectiveKind::all_gather:
        return collectives_.all_gather(part, whole, Purpose::other);
      case CollectiveKind::broadcast:
        return collectives_.broadcast(whole, 0, Purpose::other);
      case CollectiveKind::all_to_all:
        return collectives_.all_to_all(whole, second_.tensor(dtype_).slice(0, numel),
                                       Purpose::other);
    }
    return {};
  }

  Device& device_;
  Collectives& collectives_;
  DType dtype_;
  Buffer first_;
  Buffer second_;
};

CollectiveRate rate_of(Messages& messages, CollectiveKind kind, int ranks, DType dtype) {
  std::vector<double> wire;
  std::vector<Seconds> times;
  for (const Bytes message : kMessages) {
    const std::int64_t numel = messages.numel_of(message);
    wire.push_back(wire_bytes(kind, static_cast<Bytes>(numel) * size_of(dtype), ranks));
    times.push_back(messages.time(kind, numel));
  }
  return fit_collective(ring_steps(kind, ranks), wire, times);
}

}  // namespace

CollectiveRate fit_collective(int steps, const std::vector<double>& wire,
                              const std::vector<Seconds>& times) {
  if (steps == 0) return {.latency = 0, .bytes_per_s = kAtOnce};
  // Seconds per megabyte, so that both unknowns have one magnitude.
  constexpr double kUnit = 1e6;
  SquareMatrix<2> matrix{{{1e-12, 0}, {0, 1e-12}}};
  RealVector<2> right{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const RealVector<2> row{steps / times[i], wire[i] / kUnit / times[i]};
    for (std::size_t a = 0; a < row.size(); ++a) {
      right[a] += row[a];
      for (std::size_t b = 0; b < row.size(); ++b) matrix[a][b] += row[a] * row[b];
    }
  }
  const auto fit = least_non_negative(matrix, right, Cholesky(matrix).solve(right));
  return {.latency = fit[0], .bytes_per_s = fit[1] > 0 ? kUnit / fit[1] : kAtOnce};
}

std::optional<MachineRates> measure_rates(Device& device, Collectives& collectives, DType dtype,
                                          const std::vector<MatrixShape>& shapes) {
  MachineRates rates{.overlaps = device.overlaps(), .launch = time_launch(device, dtype)};
  if (!(rates.launch > 0)) return std::nullopt;
  rates.copy_bytes_per_s = copy_rate(device, dtype, rates.launch);
  Products products(device, dtype, rates.launch);
  for (const MatrixShape& shape : shapes) {
    const auto rate = products.time(shape);
    if (!rate) continue;
    rates.matrices.push_back(*rate);
    rates.flops_per_s = std::max(rates.flops_per_s, rate->flops_per_s);
  }
  if (!(rates.flops_per_s > 0)) rates.flops_per_s = rates.copy_bytes_per_s;
  Messages messages(device, collectives, dtype, kMessages.back());
  for (std::size_t i = 0; i < kCollectiveKinds; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    rates.at(kind) = rate_of(messages, kind, collectives.size(), dtype);
  }
  return rates;
}

}  // namespace dstune
