// Builds a JSON value from Boost's parser events, and finds what Boost lets pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <boost/json/value_stack.hpp>

#include "core/input/problems.hpp"

namespace dstune {

/// The handler of json::basic_parser, which fixes its names and signatures. Besides building the
/// value it reports duplicate keys (Boost keeps the last one in silence) and numbers too large for
/// a double, and reads doubles exactly (Boost's own may be off by a bit).
class CheckedJsonHandler {
 public:
  using ErrorCode = json::error_code;
  using View = json::string_view;

  static constexpr std::size_t max_object_size = json::object::max_size();  // NOLINT
  static constexpr std::size_t max_array_size = json::array::max_size();    // NOLINT
  static constexpr std::size_t max_key_size = json::string::max_size();     // NOLINT
  static constexpr std::size_t max_string_size = json::string::max_size();  // NOLINT

  CheckedJsonHandler(std::string_view pointer, Problems& problems)
      : root_(pointer), problems_(problems) {}

  /// The place up to which the parser has read; it tells a missing comma from other faults.
  enum class Place { after_value, after_key, elsewhere };
  Place place() const { return place_; }

  json::value take() { return stack_.release(); }

  bool on_document_begin(ErrorCode& fault);
  bool on_document_end(ErrorCode& fault);
  bool on_object_begin(ErrorCode& fault);
  bool on_object_end(std::size_t count, ErrorCode& fault);
  bool on_array_begin(ErrorCode& fault);
  bool on_array_end(std::size_t count, ErrorCode& fault);
  bool on_key_part(View part, std::size_t size, ErrorCode& fault);
  bool on_key(View part, std::size_t size, ErrorCode& fault);
  bool on_string_part(View part, std::size_t size, ErrorCode& fault);
  bool on_string(View part, std::size_t size, ErrorCode& fault);
  bool on_number_part(View part, ErrorCode& fault);
  bool on_int64(std::int64_t number, View part, ErrorCode& fault);
  bool on_uint64(std::uint64_t number, View part, ErrorCode& fault);
  bool on_double(double number, View part, ErrorCode& fault);
  bool on_bool(bool value, ErrorCode& fault);
  bool on_null(ErrorCode& fault);
  bool on_comment_part(View part, ErrorCode& fault);
  bool on_comment(View part, ErrorCode& fault);

 private:
  /// An object or list that is being read.
  struct Level {
    bool is_list = false;
    std::size_t index = 0;                 ///< the index of the element being read
    std::string key;                       ///< the key of the member being read
    std::unordered_set<std::string> keys;  ///< the keys read so far
  };

  std::string pointer() const;
  bool value_ended();
  bool begin(bool is_list);

  std::string root_;
  Problems& problems_;
  json::value_stack stack_;
  std::vector<Level> levels_;
  Place place_ = Place::elsewhere;
  std::string key_;     ///< parts of the key being read
  std::string number_;  ///< parts of the number being read
};

}  // namespace dstune
