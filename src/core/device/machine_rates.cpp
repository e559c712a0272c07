#include "core/device/machine_rates.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/json.hpp"

namespace dstune {
namespace {

CollectiveRate rate_from_json(const json::object& object) {
  return {.latency = object.at("latency_s").to_number<double>(),
          .bytes_per_s = object.at("bytes_per_s").to_number<double>()};
}

/// The product's shape, from the bytes of its operands: m k, k n and m n values of equal size.
MatrixShape shape_of(const Work& product) {
  const auto bytes = [](const Operand& operand) { return static_cast<double>(operand.bytes); };
  const double a = bytes(product.reads.begin()[0]);
  const double b = bytes(product.reads.begin()[1]);
  const double c = bytes(product.writes.begin()[0]);
  const double volume = product.flops / 2;
  const double value = std::cbrt(a * b * c / (volume * volume));
  const auto side = [&](double one, double other, double opposite) {
    return std::llround(std::sqrt(one * other / opposite / value));
  };
  return {.rows = side(a, c, b), .cols = side(b, c, a), .inner = side(a, b, c)};
}

double distance(const MatrixShape& a, const MatrixShape& b) {
  const auto apart = [](std::int64_t x, std::int64_t y) {
    return std::fabs(std::log(static_cast<double>(x) / static_cast<double>(y)));
  };
  return apart(a.rows, b.rows) + apart(a.cols, b.cols) + apart(a.inner, b.inner);
}

}  // namespace

double rate_of(const MachineRates& rates, const Work& product) {
  if (rates.matrices.empty() || product.flops == 0) return rates.flops_per_s;
  const MatrixShape shape = shape_of(product);
  const auto nearest = std::min_element(
      rates.matrices.begin(), rates.matrices.end(), [&](const auto& a, const auto& b) {
        return distance(a.shape, shape) < distance(b.shape, shape);
      });
  return nearest->flops_per_s;
}

int ring_steps(CollectiveKind kind, int ranks) {
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (ranks - 1);
}

MachineRates merge(const std::vector<MachineRates>& ranks) {
  MachineRates slowest = ranks.at(0);
  for (const MachineRates& rank : ranks) {
    slowest.flops_per_s = std::min(slowest.flops_per_s, rank.flops_per_s);
    slowest.copy_bytes_per_s = std::min(slowest.copy_bytes_per_s, rank.copy_bytes_per_s);
    slowest.launch = std::max(slowest.launch, rank.launch);
    std::vector<MatrixRate> common;
    for (const MatrixRate& own : slowest.matrices) {
      const auto same = std::find_if(rank.matrices.begin(), rank.matrices.end(),
                                     [&](const auto& other) { return other.shape == own.shape; });
      if (same == rank.matrices.end()) continue;
      common.push_back({own.shape, std::min(own.flops_per_s, same->flops_per_s)});
    }
    slowest.matrices = std::move(common);
    for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      CollectiveRate& rate = slowest.collectives[kind];
      rate.latency = std::max(rate.latency, rank.collectives[kind].latency);
      rate.bytes_per_s = std::min(rate.bytes_per_s, rank.collectives[kind].bytes_per_s);
    }
  }
  return slowest;
}

json::object to_json(const MachineRates& rates) {
  json::array matrices;
  for (const MatrixRate& matrix : rates.matrices) {
    matrices.push_back(json::object{{"rows", matrix.shape.rows},
                                    {"cols", matrix.shape.cols},
                                    {"inner", matrix.shape.inner},
                                    {"flops_per_s", matrix.flops_per_s}});
  }
  json::object collectives;
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    const CollectiveRate& rate = rates.collectives[kind];
    collectives[name_of(static_cast<CollectiveKind>(kind))] =
        json::object{{"latency_s", rate.latency}, {"bytes_per_s", rate.bytes_per_s}};
  }
  return {{"overlaps", rates.overlaps},
          {"flops_per_s", rates.flops_per_s},
          {"copy_bytes_per_s", rates.copy_bytes_per_s},
          {"launch_s", rates.launch},
          {"matrices", matrices},
          {"collectives", collectives}};
}

MachineRates machine_rates_from_json(const json::object& object) {
  MachineRates rates;
  rates.overlaps = object.at("overlaps").as_bool();
  rates.flops_per_s = object.at("flops_per_s").to_number<double>();
  rates.copy_bytes_per_s = object.at("copy_bytes_per_s").to_number<double>();
  rates.launch = object.at("launch_s").to_number<double>();
  for (const json::value& value : object.at("matrices").as_array()) {
    const json::object& matrix = value.as_object();
    rates.matrices.push_back({.shape = {.rows = matrix.at("rows").to_number<std::int64_t>(),
                                        .cols = matrix.at("cols").to_number<std::int64_t>(),
                                        .inner = matrix.at("inner").to_number<std::int64_t>()},
                              .flops_per_s = matrix.at("flops_per_s").to_number<double>()});
  }
  const json::object& collectives = object.at("collectives").as_object();
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    rates.collectives[kind] =
        rate_from_json(collectives.at(name_of(static_cast<CollectiveKind>(kind))).as_object());
  }
  return rates;
}

}  // namespace dstune
