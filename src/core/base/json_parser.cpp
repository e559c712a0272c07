#include "core/base/json_parser.hpp"

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include "core/base/text.hpp"

namespace dstune {

namespace {

// The handler that basic_parser calls for each token. Its names and signatures are Boost's.
class ExactHandler {
 public:
  using ErrorCode = json::error_code;
  using View = json::string_view;

  static constexpr std::size_t max_object_size = json::object::max_size();  // NOLINT
  static constexpr std::size_t max_array_size = json::array::max_size();    // NOLINT
  static constexpr std::size_t max_key_size = json::string::max_size();     // NOLINT
  static constexpr std::size_t max_string_size = json::string::max_size();  // NOLINT

  explicit ExactHandler(json::storage_ptr storage) : storage_(std::move(storage)) {}

  json::value take() { return stack_.release(); }

  bool on_document_begin(ErrorCode& /*fault*/) {
    stack_.reset(storage_);
    return true;
  }
  bool on_document_end(ErrorCode& /*fault*/) { return true; }
  bool on_object_begin(ErrorCode& /*fault*/) { return true; }
  bool on_object_end(std::size_t count, ErrorCode& /*fault*/) {
    stack_.push_object(count);
    return true;
  }
  bool on_array_begin(ErrorCode& /*fault*/) { return true; }
  bool on_array_end(std::size_t count, ErrorCode& /*fault*/) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
    stack_.push_chars(part);
    return true;
  }
  bool on_key(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(View part, ErrorCode& /*fault*/) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t number, View /*part*/, ErrorCode& /*fault*/) {
    number_.clear();
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, View /*part*/, ErrorCode& /*fault*/) {
    number_.clear();
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double number, View part, ErrorCode& /*fault*/) {
    number_.append(part.data(), part.size());
    // A number that is out of range (1e-400, 1e999) keeps Boost's 0 or infinity: from_chars leaves
    // it as it is.
    std::from_chars(number_.data(), number_.data() + number_.size(), number);
    number_.clear();
    stack_.push_double(number);
    return true;
  }
  bool on_bool(bool value, ErrorCode& /*fault*/) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(ErrorCode& /*fault*/) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(View /*part*/, ErrorCode& /*fault*/) { return true; }
  bool on_comment(View /*part*/, ErrorCode& /*fault*/) { return true; }

 private:
  json::storage_ptr storage_;
  json::value_stack stack_;
  std::string number_;  // text of the number being read, if it came in parts
};

}  // namespace

json::value parse_json(std::string_view text, json::storage_ptr storage) {
  json::basic_parser<ExactHandler> parser{json::parse_options{}, std::move(storage)};
  json::error_code fault;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), fault);
  if (!fault && used < text.size()) fault = json::error::extra_data;
  if (fault) {
    throw std::invalid_argument(concat("not JSON: ", fault.message(), " at byte ", used));
  }
  return parser.handler().take();
}

}  // namespace dstune
