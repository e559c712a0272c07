#include "core/input/read_yaml.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "core/base/text.hpp"

namespace dstune {
namespace {

/// What ends the reading of a text that is YAML all the same.
class Refused : public std::runtime_error {
 public:
  Refused(const YAML::Mark& mark, const std::string& what)
      : std::runtime_error(what), mark_(mark) {}
  const YAML::Mark& mark() const noexcept { return mark_; }

 private:
  YAML::Mark mark_;
};

std::string place_of(const YAML::Mark& mark) {
  return mark.is_null() ? "file" : concat("line ", mark.line + 1, ", column ", mark.column + 1);
}

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

template <class Number, class... Base>
std::optional<Number> whole_number(const std::string& text, Base... base) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, fault] = std::from_chars(text.data(), last, number, base...);
  if (fault != std::errc() || end != last) return std::nullopt;
  return number;
}

// An integer of YAML 1.1, without its sign: 0b101, 0x1F, 1_000, and 017 to the base of eight.
std::optional<std::int64_t> integer_in(std::string_view text, bool is_negative) {
  int base = text.size() > 1 && text.front() == '0' ? 8 : 10;
  if (text.starts_with("0b") || text.starts_with("0x")) {
    base = text[1] == 'b' ? 2 : 16;
    text.remove_prefix(2);
    if (text.starts_with('-')) return std::nullopt;
  }
  return whole_number<std::int64_t>(concat(is_negative ? "-" : "", without_underscores(text)),
                                    base);
}

// With a point or an exponent, or an integer of more than 64 bits.
std::optional<double> real_in(std::string_view text) {
  const bool is_whole = std::ranges::all_of(text, is_digit);
  if (is_whole && text.front() == '0') return std::nullopt;  // 08, which is no octal number
  const bool has_point = text.find('.') != std::string_view::npos && !text.starts_with("._");
  return whole_number<double>(has_point ? without_underscores(text) : std::string(text));
}

// A number must begin with a digit or a dot: else "inf" and "nan" would be numbers.
std::optional<json::value> number_in(std::string_view text) {
  const bool is_negative = text.front() == '-';
  if (is_negative || text.front() == '+') text.remove_prefix(1);
  if (text.empty() || (!is_digit(text.front()) && text.front() != '.')) return std::nullopt;
  if (const auto integer = integer_in(text, is_negative)) return *integer;
  if (const auto real = real_in(text)) return is_negative ? -*real : *real;
  return std::nullopt;
}

json::value plain_value(std::string_view text) {
  if (text.empty() || is_any_of(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (is_any_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_any_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}))
    return false;
  if (const auto number = number_in(text)) return *number;
  return json::string(text);
}

/// Makes the value as the parser goes through the document.
class ValueMaker final : public YAML::EventHandler {
 public:
  ValueMaker(Problems& problems, std::size_t max_depth)
      : problems_(problems), max_depth_(max_depth) {}

  json::value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, nullptr);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refused(mark, "is an alias; accepted: the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    add(mark, tag == "?" || tag.empty() ? plain_value(value) : json::value(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YAML::Mark mark;
    json::value value;
    std::optional<std::string> key;  ///< of the member that comes next
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) throw Refused(mark, "has an anchor; accepted: the value without it");
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!is_any_of(tag, {"", "?", "!"})) {
      throw Refused(mark, concat("has the tag ", in_quotes(tag), "; accepted: none"));
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            json::value empty) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= max_depth_) {
      throw Refused(mark, concat("is nested deeper than ", max_depth_, " levels"));
    }
    open_.push_back({mark, std::move(empty), std::nullopt});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, std::move(done.value));
  }

  void add(const YAML::Mark& mark, json::value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& around = open_.back();
    if (around.value.is_array()) {
      around.value.get_array().push_back(std::move(value));
    } else if (!around.key) {
      around.key = text_of_key(mark, value);
    } else {
      if (around.value.get_object().contains(*around.key)) {
        problems_.add(place_of(mark), concat("has the key ", in_quotes(*around.key), " again"));
      }
      around.value.get_object()[*std::exchange(around.key, std::nullopt)] = std::move(value);
    }
  }

  static std::string text_of_key(const YAML::Mark& mark, const json::value& key) {
    if (key.is_structured()) throw Refused(mark, "has a key that is not a string");
    const auto* const text = key.if_string();
    return text != nullptr ? std::string(*text) : to_json_text(key, 0);
  }

  Problems& problems_;
  std::size_t max_depth_;
  std::vector<Open> open_;
  json::value root_;
};

}  // namespace

std::optional<json::value> parse_config_yaml(std::string_view text, Problems& problems,
                                             const JsonLimits& limits) {
  std::istringstream stream{std::string(text)};
  ValueMaker maker(problems, limits.max_depth);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(maker)) return json::value(nullptr);
    ValueMaker further(problems, limits.max_depth);
    if (parser.HandleNextDocument(further)) {
      problems.add("file", "has more than one YAML document; accepted: one");
      return std::nullopt;
    }
    return maker.take();
  } catch (const Refused& refused) {
    problems.add(place_of(refused.mark()), refused.what());
  } catch (const YAML::Exception& fault) {
    problems.add(place_of(fault.mark), concat("is not YAML: ", fault.msg));
  }
  return std::nullopt;
}

}  // namespace dstune
