#include "core/device/rates/machine_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dstune {
namespace {

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

/// The rate with the nearest shape among those for which `counts` is true, of which there is at
/// least one.
template <class Counts>
const MatrixRate& nearest_of(const std::vector<MatrixRate>& rates, const MatrixShape& shape,
                             Counts counts) {
  const MatrixRate* nearest = &rates.front();
  double least = std::numeric_limits<double>::infinity();
  for (const MatrixRate& rate : rates) {
    const double apart = distance(rate.shape, shape);
    if (!(apart < least) || !counts(rate)) continue;
    nearest = &rate;
    least = apart;
  }
  return *nearest;
}

using Values = std::vector<double>;

double geometric_mean(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

template <class List, class Same>
auto find_line(List& list, Same same) {
  return std::find_if(list.begin(), list.end(), same);
}

/// Makes one number of the same number of several machines or ranks.
template <class OfRates, class OfTimes>
class Together {
 public:
  Together(const std::vector<MachineRates>& all, OfRates of_rates, OfTimes of_times)
      : all_(all), of_rates_(of_rates), of_times_(of_times) {}

  template <class Number>
  double rate(Number number) const {
    return of_rates_(numbers(number));
  }
  template <class Number>
  double time(Number number) const {
    return of_times_(numbers(number));
  }
  /// @param rate_in  gives the rate of one of them
  template <class RateIn>
  CollectiveRate collective(RateIn rate_in) const {
    return {.latency = time([&](const auto& one) { return rate_in(one).latency; }),
            .bytes_per_s = rate([&](const auto& one) { return rate_in(one).bytes_per_s; })};
  }
  /// Removes from `own`, a copy of the first one's `list`, what is not in the lists of all.
  template <class List, class Same>
  void keep_common(List MachineRates::*list, List& own, Same same) const {
    std::erase_if(own, [&](const auto& line) {
      return std::any_of(all_.begin(), all_.end(), [&](const MachineRates& one) {
        return find_line(one.*list, [&](const auto& other) { return same(line, other); }) ==
               (one.*list).end();
      });
    });
  }

 private:
  template <class Number>
  Values numbers(Number number) const {
    Values values;
    values.reserve(all_.size());
    for (const MachineRates& one : all_) values.push_back(number(one));
    return values;
  }

  const std::vector<MachineRates>& all_;
  OfRates of_rates_;
  OfTimes of_times_;
};

/// The host's rates of those of `all` that have them, of which there is at least one.
template <class OfRates, class OfTimes>
HostRates host_together(const std::vector<MachineRates>& all, OfRates of_rates, OfTimes of_times) {
  const Together make(all, of_rates, of_times);
  HostRates result = all.front().host.value();
  const auto copy = [&](const auto& rate_in) {
    return CopyRate{
        .latency = make.time([&](const auto& one) { return rate_in(*one.host).latency; }),
        .bytes_per_s = make.rate([&](const auto& one) { return rate_in(*one.host).bytes_per_s; })};
  };
  for (std::size_t i = 0; i < kHostCopies.size(); ++i) {
    result.copies[i] = {copy([&](const HostRates& one) { return one.copies[i].alone; }),
                        copy([&](const HostRates& one) { return one.copies[i].together; })};
  }
  result.both_ways_bytes_per_s =
      make.rate([](const auto& one) { return one.host->both_ways_bytes_per_s; });
  for (HostPassRate& pass : result.passes) {
    pass.bytes_per_s =
        make.rate([&](const auto& one) { return one.host->pass_bytes_per_s(pass.threads); });
  }
  return result;
}

std::vector<MachineRates> with_host(std::vector<MachineRates> all) {
  std::erase_if(all, [](const MachineRates& one) { return !one.host; });
  return all;
}

template <class OfRates, class OfTimes>
MachineRates together(const std::vector<MachineRates>& all, OfRates of_rates, OfTimes of_times) {
  const Together make(all, of_rates, of_times);
  MachineRates result = all.at(0);
  result.flops_per_s = make.rate([](const auto& one) { return one.flops_per_s; });
  result.copy_bytes_per_s = make.rate([](const auto& one) { return one.copy_bytes_per_s; });
  result.launch = make.time([](const auto& one) { return one.launch; });
  make.keep_common(&MachineRates::matrices, result.matrices,
                   [](const auto& a, const auto& b) { return a.shape == b.shape; });
  for (MatrixRate& own : result.matrices) {
    const auto same = [&](const auto& other) { return other.shape == own.shape; };
    own.flops_per_s =
        make.rate([&](const auto& one) { return find_line(one.matrices, same)->flops_per_s; });
  }
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    result.collectives[kind] =
        make.collective([&](const auto& one) { return one.collectives[kind]; });
  }
  make.keep_common(&MachineRates::messages, result.messages,
                   [](const auto& a, const auto& b) { return a.message == b.message; });
  for (MessageRate& own : result.messages) {
    const auto same = [&](const auto& other) { return other.message == own.message; };
    own.rate =
        make.collective([&](const auto& one) { return find_line(one.messages, same)->rate; });
  }
  const auto measured = with_host(all);
  if (!measured.empty()) result.host = host_together(measured, of_rates, of_times);
  return result;
}

}  // namespace

double rate_of(const MachineRates& rates, const Work& product) {
  if (rates.matrices.empty() || product.flops == 0) return rates.flops_per_s;
  const MatrixShape shape = shape_of(product);
  const MatrixRate& nearest = nearest_of(rates.matrices, shape, [](const auto&) { return true; });
  const double to_nearest = distance(nearest.shape, shape);
  // True if no side of the product's shape is beyond both shapes.
  const auto is_beyond = [&](const MatrixRate& other) {
    constexpr double kRounding = 1e-9;
    return to_nearest + distance(other.shape, shape) <=
           distance(nearest.shape, other.shape) + kRounding;
  };
  if (to_nearest == 0 || std::none_of(rates.matrices.begin(), rates.matrices.end(), is_beyond)) {
    return nearest.flops_per_s;
  }
  const MatrixRate& beyond = nearest_of(rates.matrices, shape, is_beyond);
  const double part = to_nearest / (to_nearest + distance(beyond.shape, shape));
  return std::pow(nearest.flops_per_s, 1 - part) * std::pow(beyond.flops_per_s, part);
}

const CollectiveRate& rate_of(const MachineRates& rates, const GroupMessage& message) {
  const CollectiveRate* in_such_a_group = nullptr;
  for (const MessageRate& known : rates.messages) {
    if (known.message == message) return known.rate;
    GroupMessage of_its_type = message;
    of_its_type.dtype = known.message.dtype;
    if (known.message == of_its_type) in_such_a_group = &known.rate;
  }
  return in_such_a_group != nullptr ? *in_such_a_group : rates.at(message.kind);
}

int ring_steps(CollectiveKind kind, int ranks) {
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (ranks - 1);
}

MachineRates merge(const std::vector<MachineRates>& ranks) {
  const auto least = [](const Values& values) {
    return *std::min_element(values.begin(), values.end());
  };
  const auto most = [](const Values& values) {
    return *std::max_element(values.begin(), values.end());
  };
  return together(ranks, least, most);
}

MachineRates typical(const std::vector<MachineRates>& groups) {
  return together(groups, geometric_mean, geometric_mean);
}

}  // namespace dstune
