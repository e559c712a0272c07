#include "core/input/checked_json_handler.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

std::string CheckedJsonHandler::pointer() const {
  std::string path = root_;
  for (const auto& level : levels_) {
    path = level.is_list ? child(path, level.index) : child(path, level.key);
  }
  return path;
}

bool CheckedJsonHandler::value_ended() {
  if (!levels_.empty() && levels_.back().is_list) ++levels_.back().index;
  place_ = levels_.empty() ? Place::elsewhere : Place::after_value;
  return true;
}

bool CheckedJsonHandler::begin(bool is_list) {
  levels_.emplace_back().is_list = is_list;
  place_ = Place::elsewhere;
  return true;
}

bool CheckedJsonHandler::on_document_begin(ErrorCode& /*fault*/) {
  stack_.reset();
  return true;
}

bool CheckedJsonHandler::on_document_end(ErrorCode& /*fault*/) { return true; }

bool CheckedJsonHandler::on_object_begin(ErrorCode& /*fault*/) { return begin(false); }

bool CheckedJsonHandler::on_object_end(std::size_t count, ErrorCode& /*fault*/) {
  levels_.pop_back();
  stack_.push_object(count);
  return value_ended();
}

bool CheckedJsonHandler::on_array_begin(ErrorCode& /*fault*/) { return begin(true); }

bool CheckedJsonHandler::on_array_end(std::size_t count, ErrorCode& /*fault*/) {
  levels_.pop_back();
  stack_.push_array(count);
  return value_ended();
}

bool CheckedJsonHandler::on_key_part(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
  key_.append(part.data(), part.size());
  stack_.push_chars(part);
  return true;
}

bool CheckedJsonHandler::on_key(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
  key_.append(part.data(), part.size());
  stack_.push_key(part);
  auto& level = levels_.back();
  const bool is_new = level.keys.insert(key_).second;
  level.key = std::exchange(key_, {});
  place_ = Place::after_key;
  if (!is_new) problems_.add(pointer(), "is given more than once; keep one of them");
  return true;
}

bool CheckedJsonHandler::on_string_part(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
  stack_.push_chars(part);
  return true;
}

bool CheckedJsonHandler::on_string(View part, std::size_t /*size*/, ErrorCode& /*fault*/) {
  stack_.push_string(part);
  return value_ended();
}

bool CheckedJsonHandler::on_number_part(View part, ErrorCode& /*fault*/) {
  number_.append(part.data(), part.size());
  return true;
}

bool CheckedJsonHandler::on_int64(std::int64_t number, View /*part*/, ErrorCode& /*fault*/) {
  number_.clear();
  stack_.push_int64(number);
  return value_ended();
}

bool CheckedJsonHandler::on_uint64(std::uint64_t number, View /*part*/, ErrorCode& /*fault*/) {
  number_.clear();
  stack_.push_uint64(number);
  return value_ended();
}

bool CheckedJsonHandler::on_double(double number, View part, ErrorCode& /*fault*/) {
  number_.append(part.data(), part.size());
  // A number that is out of range (1e-400, 1e999) keeps Boost's 0 or infinity.
  std::from_chars(number_.data(), number_.data() + number_.size(), number);
  if (std::isfinite(number)) {
    stack_.push_double(number);
  } else {  // no reader gets a number that no text can hold
    problems_.add(pointer(), concat("is ", number_.substr(0, 40), ", too large for a number"));
    stack_.push_null();
  }
  number_.clear();
  return value_ended();
}

bool CheckedJsonHandler::on_bool(bool value, ErrorCode& /*fault*/) {
  stack_.push_bool(value);
  return value_ended();
}

bool CheckedJsonHandler::on_null(ErrorCode& /*fault*/) {
  stack_.push_null();
  return value_ended();
}

bool CheckedJsonHandler::on_comment_part(View /*part*/, ErrorCode& /*fault*/) { return true; }
bool CheckedJsonHandler::on_comment(View /*part*/, ErrorCode& /*fault*/) { return true; }

}  // namespace dstune
