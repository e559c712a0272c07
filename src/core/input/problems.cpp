#include "core/input/problems.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

// The first characters of `text`, with control characters as '?'.
std::string cut(std::string_view text, std::size_t longest) {
  std::string shown(text.substr(0, longest));
  if (text.size() > longest) {
    // A cut inside a UTF-8 sequence would make the message invalid.
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0U) == 0x80U) {
      shown.pop_back();
    }
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0xC0U) shown.pop_back();
    shown += "...";
  }
  for (char& letter : shown) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20U || code == 0x7FU) letter = '?';
  }
  return shown;
}

}  // namespace

void Problems::add(std::string where, std::string what) {
  constexpr std::size_t kMostShown = 50;
  if (list_.size() == kMostShown) {
    ++left_out_;
  } else {
    list_.push_back({std::move(where), std::move(what)});
  }
}

void Problems::warn(std::string_view where, std::string_view what) {
  warnings_.push_back({std::string(where), std::string(what)});
}

std::vector<std::string> Problems::warnings() const {
  constexpr std::size_t kMostShown = 20;
  return folded(warnings_, kMostShown);
}

void Problems::add_all(const Problems& file) {
  for (const auto& problem : file.list_) {
    const bool is_pointer = !problem.where.empty() && problem.where.front() == '/';
    add(concat(file.source_, is_pointer ? "#" : ": ", problem.where), problem.what);
  }
  left_out_ += file.left_out_;
}

void Problems::throw_if_any() const {
  if (empty()) return;
  auto shown = list_;
  if (left_out_ > 0) shown.push_back({"...", concat("and ", left_out_, " more")});
  throw ConfigError(source_, std::move(shown));
}

namespace {

/// Notes with the same parent and the same text.
struct Fold {
  std::string place;  ///< the place of the first note
  std::string parent;
  std::string what;
  std::vector<std::string> first_keys;
  std::size_t keys = 0;
};

std::string text_of(const Fold& fold) {
  if (fold.keys == 1) return concat(fold.place, ' ', fold.what);
  const char* const more = fold.keys > fold.first_keys.size() ? ", ..." : "";
  return concat(fold.parent, "/* ", fold.what, " (", fold.keys,
                " keys: ", join(fold.first_keys, ", "), more, ")");
}

}  // namespace

std::vector<std::string> folded(const std::vector<Problem>& notes, std::size_t most) {
  constexpr std::size_t kMostNamed = 3;
  constexpr std::size_t kLongest = 40;
  std::vector<Fold> folds;
  std::map<std::pair<std::string, std::string>, std::size_t> fold_of;
  for (const auto& note : notes) {
    const auto slash = std::min(note.where.rfind('/'), note.where.size());
    const std::string parent = note.where.substr(0, slash);
    const auto [found, is_new] = fold_of.try_emplace({parent, note.what}, folds.size());
    if (is_new) folds.push_back({note.where, parent, note.what, {}, 0});
    Fold& fold = folds[found->second];
    if (++fold.keys > kMostNamed) continue;
    fold.first_keys.push_back(
        cut(note.where.substr(std::min(slash + 1, note.where.size())), kLongest));
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < folds.size() && i < most; ++i) texts.push_back(text_of(folds[i]));
  if (folds.size() > most) texts.push_back(concat("... and ", folds.size() - most, " more"));
  return texts;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return concat('"', cut(text, kLongest), '"');
}

std::string describe(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.get_array().empty() ? "an empty list" : "a list";
  if (value.is_string()) return in_quotes(std::string_view(value.get_string()));
  return to_json_text(value, 0);
}

std::string child(std::string_view pointer, std::string_view key) {
  std::string path = concat(pointer, '/');
  for (const char letter : key) {
    if (letter == '~') {
      path += "~0";
    } else if (letter == '/') {
      path += "~1";
    } else {
      path += static_cast<unsigned char>(letter) < 0x20U ? '?' : letter;
    }
  }
  return path;
}

std::string child(std::string_view pointer, std::size_t index) {
  return concat(pointer, '/', index);
}

}  // namespace dstune
