// Collects the faults of one input, so that they are reported all at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"

namespace dstune {

/// The faults found so far in one source. Beyond the first 50 only their number is kept: a file of
/// garbage must not give a message of a million lines.
class Problems {
 public:
  /// @param source  its name: the path of a file, "command line", ...
  explicit Problems(std::string source) : source_(std::move(source)) {}

  /// @param where  JSON pointer, flag or "line 3"
  /// @param what   the sentence that `where` begins: "is 4; accepted: 0, 1, 2, 3"
  void add(std::string where, std::string what);

  /// Adds a remark that is no fault but worth a line: "/zero_optimization/x is not known".
  void warn(std::string_view where, std::string_view what);
  /// The warnings, one line each. Those that differ only in the last step of their pointers are
  /// folded into one, and beyond the first 20 only their number is kept.
  std::vector<std::string> warnings() const;

  bool empty() const noexcept { return list_.empty(); }
  std::size_t count() const noexcept { return list_.size() + left_out_; }
  const std::string& source() const noexcept { return source_; }

  /// Adds the faults of a file that this source names: "gpt2.json#/n_embd", "gpt2.json: line 3".
  void add_all(const Problems& file);

  /// @throws ConfigError  with everything that was added, if that is anything
  void throw_if_any() const;

 private:
  std::string source_;
  std::vector<Problem> list_;
  std::size_t left_out_ = 0;
  std::vector<Problem> warnings_;
};

/// `value` as a message shows it: scalars as JSON text that is cut to 40 characters, and otherwise
/// "a list" or "an object".
std::string describe(const json::value& value);
/// `text` in quotes, cut to 40 characters, with control characters as '?'.
std::string in_quotes(std::string_view text);

/// "POINTER WHAT" for each note. Notes with the same parent and the same text become one line:
/// "/a/* WHAT (4 keys: x, y, z, ...)". If there are more than `most` lines, the last line says how
/// many are left out.
std::vector<std::string> folded(const std::vector<Problem>& notes, std::size_t most);

/// The JSON pointer (RFC 6901) of the member `key`, or of an element.
std::string child(std::string_view pointer, std::string_view key);
std::string child(std::string_view pointer, std::size_t index);

}  // namespace dstune
