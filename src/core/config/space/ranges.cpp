#include "core/config/space/ranges.hpp"

#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "core/base/text.hpp"
#include "core/config/space/symbolic.hpp"

namespace dstune {
namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr double kRounding = 1e-9;

constexpr KeyRule kRangeRules[] = {any("from"), any("to"), integer("per_decade", 1, 1000),
                                   above("step", 0), integer("powers_of", 2, 1000)};
constexpr Section kRange{.rules = kRangeRules};

/// Reads the members of one range.
class RangeReader {
 public:
  RangeReader(const json::object& range, std::string_view where, std::int64_t hidden_size,
              Problems& problems)
      : where_(where),
        hidden_size_(hidden_size),
        problems_(problems),
        before_(problems.count()),
        values_(check_section(range, kRange, where, problems)) {}

  std::optional<double> number(std::string_view key) const {
    const auto* const value = values_.if_contains(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->to_number<double>();
    const auto product = value->is_string()
                             ? evaluate(std::string_view(value->get_string()), hidden_size_)
                             : std::nullopt;
    if (!product) {
      problems_.add(child(where_, key), concat("is ", describe(*value),
                                               "; accepted: a number or a product of h, the "
                                               "hidden size, such as \"10*h\""));
    }
    return product;
  }

  void refuse(const std::string& what) const { problems_.add(where_, what); }
  bool is_faultless() const { return problems_.count() == before_; }

 private:
  std::string where_;
  std::int64_t hidden_size_;
  Problems& problems_;
  std::size_t before_;
  json::object values_;
};

using Step = std::function<double(int)>;  // the i-th value

std::optional<Step> step_of(const RangeReader& reader, double from) {
  const auto per_decade = reader.number("per_decade");
  const auto step = reader.number("step");
  const auto base = reader.number("powers_of");
  const int kinds = int{per_decade.has_value()} + int{step.has_value()} + int{base.has_value()};
  if (kinds != 1) {
    reader.refuse("needs one of \"per_decade\", \"step\" and \"powers_of\"");
    return std::nullopt;
  }
  if (step) return [=](int i) { return from + i * *step; };
  if (from <= 0) {
    reader.refuse("starts at or below 0, where only \"step\" has a next value");
    return std::nullopt;
  }
  if (per_decade) return [=](int i) { return from * std::pow(10.0, i / *per_decade); };
  const double first = std::ceil(std::log(from) / std::log(*base) - kRounding);
  return [=](int i) { return std::pow(*base, first + i); };
}

json::value value_of(double number, const KeyPlace& place) {
  const bool is_integer = place.rule != nullptr && place.rule->kind == ValueKind::integer;
  return is_integer ? json::value(std::llround(number)) : json::value(number);
}

}  // namespace

std::vector<json::value> read_range(const json::object& range, const KeyPlace& place,
                                    std::string_view where, std::int64_t hidden_size,
                                    Problems& problems) {
  const RangeReader reader(range, where, hidden_size, problems);
  const auto from = reader.number("from");
  const auto to = reader.number("to");
  if (!reader.is_faultless()) return {};
  if (!from || !to || *from > *to || std::abs(*to) > 0x1p53) {
    reader.refuse("needs \"from\" and a \"to\" that is not below it");
    return {};
  }
  const auto step = step_of(reader, *from);
  if (!step) return {};
  std::vector<json::value> values;
  for (int i = 0; (*step)(i) <= *to + kRounding * std::abs(*to); ++i) {
    if (values.size() == kLongestAxis) {
      reader.refuse(concat("makes more than ", kLongestAxis, " values"));
      return {};
    }
    values.push_back(value_of((*step)(i), place));
  }
  if (values.empty()) reader.refuse("holds no value");
  return values;
}

}  // namespace dstune
