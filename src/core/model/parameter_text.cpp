#include "core/model/parameter_text.hpp"

#include <array>
#include <cstddef>

#include "core/base/text.hpp"

namespace dstune {

std::string format_count(std::int64_t count) {
  constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " B", " T"};
  constexpr double kNextUnit = 999.5;  // from here on three digits round to 1000
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  while (value >= kNextUnit && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return concat(count);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return concat(fixed(value, decimals), kUnits[unit]);
}

std::string parameter_text(std::int64_t all, std::int64_t trained) {
  return concat(format_count(all), " parameters",
                trained == all ? "" : concat(", ", format_count(trained), " trained"));
}

}  // namespace dstune
