// A trainer's file on its way to the form of CONFIG.json: what was read of it, and what is said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Reads keys of one trainer's file and collects what becomes of them. Keys that are null count as
/// absent, as all trainers have it. Faults are added to the problems with the key's pointer.
class Translation {
 public:
  /// @param given, problems  must outlive this
  /// @param path  of the file
  Translation(const json::object& given, std::filesystem::path path, Problems& problems);
  /// The same of the object at `key`, whose pointers begin with that.
  /// @param given  must outlive the result
  Translation section(std::string_view key, const json::object& given) const;

  /// The member `key`; nullptr if it is absent or null. It counts as read.
  const json::value* find(std::string_view key);
  /// Whether the file has the key, null or not.
  bool has(std::string_view key) const { return given_.contains(key); }
  /// The values of keys; a number or boolean may be written as a text, as its YAML or a command
  /// line may have it. Any other value is a fault.
  std::optional<bool> flag(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least);
  std::optional<double> number(std::string_view key);
  std::optional<std::string> text(std::string_view key);

  /// Sets a key of the section "dstune".
  /// @param from  the key that says so, for the note: "KEY's default" where it is absent or null.
  ///              Dots lead into mappings
  void set(std::string_view dstune_key, json::value value, std::string_view from);
  /// Says where a value of the DeepSpeed part comes from.
  /// @param from  as for set()
  void note_origin(std::string_view key, const json::value& value, std::string_view from);
  void note(std::string text) { notes_.push_back(std::move(text)); }

  /// Reads the DeepSpeed file, or the object, that `key` names: a path is relative to the working
  /// directory, as for the trainers, or else to the folder of this file.
  /// @returns none if the key is absent or what it names cannot be read
  std::optional<json::object> read_deepspeed(std::string_view key);

  /// Says of those that are on (neither null, false, 0, empty, "none" nor "no") that the step is
  /// tuned without them.
  void leave_out(std::span<const std::string_view> keys);
  /// Adds a fault for those that are on.
  /// @param why  "uses no DeepSpeed"
  void refuse(std::span<const std::string_view> keys, std::string_view why);
  /// Warns of keys that were not read and are not `without_effect` on a step.
  void warn_of_unknown(std::span<const std::string_view> without_effect);

  /// The whole configuration: `deepspeed` and "dstune", where anything was set. What `deepspeed`
  /// itself has there wins, and a note says so where it differs.
  json::object config(json::object deepspeed);
  /// Where its values come from in one sentence, and then what else was noted.
  std::vector<std::string> notes() const;

  void fault(std::string_view key, std::string_view what);
  std::string file_name() const { return path_.filename().string(); }

 private:
  struct Origin {
    std::string key;    ///< of DeepSpeed or "dstune"
    std::string value;  ///< as it is shown
    std::string from;
  };

  bool is_given(std::string_view dotted) const;
  /// Removes what is said of a key of "dstune", and notes that the DeepSpeed file's own wins.
  void yield_to_file(std::string_view key, std::string_view own_key, const json::value& own);

  const json::object& given_;
  std::filesystem::path path_;
  std::string pointer_;  ///< of `given_` in the file
  Problems& problems_;
  std::set<std::string, std::less<>> read_;
  json::object dstune_;
  std::vector<Origin> origins_;
  std::vector<std::string> notes_;
};

}  // namespace dstune
