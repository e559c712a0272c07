#include "core/config/space/templates.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/space/axis_values.hpp"
#include "core/config/space/variables.hpp"

namespace dstune {
namespace {

/// A stretch of a string: a variable, or text as it is.
struct Piece {
  std::string text;
  bool is_variable = false;
};
using Pieces = std::vector<Piece>;

/// A string of the file that holds variables.
struct Place {
  std::string pointer;
  Pieces pieces;
};

std::size_t end_of_name(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_variable_name(text.substr(begin, end + 1 - begin))) ++end;
  return end;
}

void add_text(Pieces& pieces, std::string_view text) {
  if (pieces.empty() || pieces.back().is_variable) pieces.push_back({});
  pieces.back().text += text;
}

Pieces pieces_of(std::string_view text) {
  Pieces pieces;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t dollar = std::min(text.find('$', i), text.size());
    if (dollar > i) add_text(pieces, text.substr(i, dollar - i));
    if (dollar == text.size()) break;
    const std::size_t end = end_of_name(text, dollar + 1);
    if (end > dollar + 1) {
      pieces.push_back({std::string(text.substr(dollar + 1, end - dollar - 1)), true});
      i = end;
    } else {
      add_text(pieces, "$");
      i = dollar + (text.substr(dollar, 2) == "$$" ? 2 : 1);
    }
  }
  return pieces;
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : to_json_text(value, 0);
}

bool is_of_the_run(std::string_view pointer) {
  return pointer.starts_with("/dstune/") || pointer.starts_with("/autotuning/");
}

/// Finds the variables of a file and makes axes of them.
class TemplateTaker {
 public:
  TemplateTaker(json::object& file, const Variables& variables, std::int64_t hidden_size,
                Problems& problems)
      : file_(file),
        variables_(variables),
        hidden_size_(hidden_size),
        problems_(problems),
        group_of_(variables.sets.size()) {
    std::iota(group_of_.begin(), group_of_.end(), std::size_t{0});
  }

  std::vector<AxisGroup> take() {
    for (auto& member : file_) find(member.value(), child("", std::string_view(member.key())));
    for (const auto& [name, values] : variables_.values) {
      if (used_.contains(name)) continue;
      problems_.add(child("/dstune/variables", name), "is used nowhere");
    }
    std::vector<AxisGroup> groups;
    for (std::size_t group = 0; group < group_of_.size(); ++group) add_group(group, groups);
    return groups;
  }

 private:
  void find(json::value& value, const std::string& pointer) {
    if (pointer == "/dstune/variables" || pointer == "/dstune/zip") return;
    if (value.is_object()) {
      for (auto& member : value.get_object()) {
        find(member.value(), child(pointer, std::string_view(member.key())));
      }
    } else if (value.is_array()) {
      auto& list = value.get_array();
      for (std::size_t i = 0; i < list.size(); ++i) find(list[i], child(pointer, i));
    } else if (value.is_string()) {
      find_in_text(value.get_string(), pointer);
    }
  }

  void find_in_text(json::string& text, const std::string& pointer) {
    Place place{pointer, pieces_of(text)};
    std::vector<std::size_t> sets;
    for (const Piece& piece : place.pieces) {
      if (!piece.is_variable) continue;
      if (!variables_.values.contains(piece.text)) {
        problems_.add(pointer, concat("holds $", piece.text,
                                      ", which dstune.variables does not "
                                      "define; $$ is a dollar"));
        return;
      }
      used_.insert(piece.text);
      sets.push_back(variables_.set_of(piece.text));
    }
    if (sets.empty()) {
      if (!place.pieces.empty()) text = place.pieces.front().text;
    } else if (is_of_the_run(pointer)) {
      problems_.add(pointer, "holds a variable, but is the same in all experiments of a run");
    } else {
      for (const std::size_t set : sets) join(sets.front(), set);
      places_.push_back(std::move(place));
    }
  }

  void join(std::size_t first, std::size_t second) {
    const std::size_t from = std::max(group_of_[first], group_of_[second]);
    const std::size_t to = std::min(group_of_[first], group_of_[second]);
    std::replace(group_of_.begin(), group_of_.end(), from, to);
  }

  void add_group(std::size_t group, std::vector<AxisGroup>& groups) {
    std::size_t size = 1;
    for (std::size_t set = 0; set < group_of_.size(); ++set) {
      if (group_of_[set] == group) size *= variables_.sets[set].size;
    }
    if (size > kLongestAxis) {
      problems_.add("/dstune/variables",
                    concat("makes ", size,
                           " values of variables that share a string; accepted: at "
                           "most ",
                           kLongestAxis));
      return;
    }
    AxisGroup axes;
    for (const Place& place : places_) {
      if (group_of_[set_of(place)] == group) add_axis(place, size, axes);
    }
    if (size > 1 && !axes.tied.empty()) groups.push_back(std::move(axes));
  }

  std::size_t set_of(const Place& place) const {
    const auto first = std::find_if(place.pieces.begin(), place.pieces.end(),
                                    [](const Piece& piece) { return piece.is_variable; });
    return variables_.set_of(first->text);
  }

  void add_axis(const Place& place, std::size_t size, AxisGroup& axes) {
    const auto key = find_key(place.pointer, place.pointer, problems_);
    if (!key) return;
    std::vector<GivenValue> values;
    for (std::size_t i = 0; i < size; ++i) values.push_back(filled(place, i));
    Axis axis = make_axis(*key, values, hidden_size_, problems_);
    if (axis.values.size() < size) return;  // a problem already
    auto* const first = file_.if_contains(keys_of(place.pointer).front());
    if (first != nullptr) set_at(file_, keys_of(place.pointer), axis.values.front());
    axes.tied.push_back(std::move(axis));
  }

  GivenValue filled(const Place& place, std::size_t index) const {
    if (place.pieces.size() == 1) {
      const std::string& name = place.pieces.front().text;
      const std::size_t at = index_of(name, index);
      return {variables_.values.find(name)->second[at],
              child(child("/dstune/variables", name), at)};
    }
    std::string text;
    for (const Piece& piece : place.pieces) {
      text += piece.is_variable
                  ? text_of(variables_.values.find(piece.text)->second[index_of(piece.text, index)])
                  : piece.text;
    }
    return {json::value(text), place.pointer};
  }

  // The last set of a group moves fastest.
  std::size_t index_of(const std::string& name, std::size_t index) const {
    const std::size_t own = variables_.set_of(name);
    for (std::size_t set = group_of_.size(); --set > own;) {
      if (group_of_[set] == group_of_[own]) index /= variables_.sets[set].size;
    }
    return index % variables_.sets[own].size;
  }

  json::object& file_;
  const Variables& variables_;
  std::int64_t hidden_size_;
  Problems& problems_;
  std::vector<std::size_t> group_of_;  // by set
  std::vector<Place> places_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

std::vector<AxisGroup> take_templates(json::object& file, std::int64_t hidden_size,
                                      Problems& problems) {
  const auto* const section = file.if_contains("dstune");
  const auto* const dstune = section == nullptr ? nullptr : section->if_object();
  if (dstune == nullptr) return {};
  if (!dstune->contains("variables")) {
    if (dstune->contains("zip")) problems.add("/dstune/zip", "needs dstune.variables");
    return {};
  }
  const Variables variables = read_variables(*dstune, problems);
  return TemplateTaker(file, variables, hidden_size, problems).take();
}

}  // namespace dstune
