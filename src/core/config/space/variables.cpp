#include "core/config/space/variables.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/config/space/axis_values.hpp"

namespace dstune {
namespace {

constexpr const char* kVariables = "/dstune/variables";
constexpr const char* kZip = "/dstune/zip";

bool is_letter(char sign) {
  return (sign >= 'A' && sign <= 'Z') || (sign >= 'a' && sign <= 'z') || sign == '_';
}

// ["A", "B"] is one list of names; [["A", "B"], ["C", "D"]] are two.
std::vector<json::array> zipped_lists(const json::value& zip, Problems& problems) {
  if (zip.is_array() && !zip.get_array().empty()) {
    const auto& lists = zip.get_array();
    const auto is_list = [](const json::value& value) { return value.is_array(); };
    if (std::all_of(lists.begin(), lists.end(), is_list)) {
      std::vector<json::array> result;
      for (const auto& list : lists) result.push_back(list.get_array());
      return result;
    }
    if (std::none_of(lists.begin(), lists.end(), is_list)) return {lists};
  }
  problems.add(kZip, concat("is ", describe(zip),
                            "; accepted: a list of variables, or a list of such lists"));
  return {};
}

/// Ties the variables of dstune.zip.
class Zipper {
 public:
  Zipper(Variables& variables, Problems& problems) : variables_(variables), problems_(problems) {}

  void tie(const json::array& names) {
    VariableSet set;
    for (const auto& name : names) {
      if (takes(name)) set.names.emplace_back(name.get_string());
    }
    if (set.names.size() < 2) return;
    set.size = variables_.values.find(set.names.front())->second.size();
    for (const std::string& name : set.names) {
      const std::size_t size = variables_.values.find(name)->second.size();
      if (size == set.size) continue;
      problems_.add(kZip, concat("ties ", name, ", which has ", size, " values, to ",
                                 set.names.front(), ", which has ", set.size));
      return;
    }
    std::erase_if(variables_.sets, [&](const VariableSet& other) {
      return std::find(set.names.begin(), set.names.end(), other.names.front()) != set.names.end();
    });
    variables_.sets.push_back(std::move(set));
  }

 private:
  bool takes(const json::value& name) {
    const std::string text = name.is_string() ? std::string(name.get_string()) : "";
    if (!variables_.values.contains(text)) {
      problems_.add(kZip, concat("holds ", describe(name), ", which dstune.variables does not"));
      return false;
    }
    if (tied_.insert(text).second) return true;
    problems_.add(kZip, concat("holds ", text, " twice"));
    return false;
  }

  Variables& variables_;
  Problems& problems_;
  std::set<std::string> tied_;
};

void read_variable(const std::string& name, const json::value& list, Variables& variables,
                   Problems& problems) {
  const std::string where = child(kVariables, name);
  if (!is_variable_name(name)) {
    problems.add(where, "is not a valid name; accepted: letters, digits and _, no digit first");
  } else if (!list.is_array() || list.get_array().empty() ||
             list.get_array().size() > kLongestAxis) {
    problems.add(where, concat("is ", describe(list), "; accepted: a list of 1 to ", kLongestAxis,
                               " values"));
  } else {
    variables.values.emplace(name, list.get_array());
    variables.sets.push_back({{name}, list.get_array().size()});
  }
}

}  // namespace

std::size_t Variables::set_of(std::string_view name) const {
  const auto found = std::find_if(sets.begin(), sets.end(), [&](const VariableSet& set) {
    return std::find(set.names.begin(), set.names.end(), name) != set.names.end();
  });
  return static_cast<std::size_t>(found - sets.begin());
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char sign) { return is_letter(sign) || (sign >= '0' && sign <= '9'); });
}

Variables read_variables(const json::object& dstune, Problems& problems) {
  Variables variables;
  const json::value& given = dstune.at("variables");
  if (!given.is_object()) {
    problems.add(kVariables, concat("is ", describe(given), "; accepted: {\"NAME\": [values]}"));
    return variables;
  }
  for (const auto& member : given.get_object()) {
    read_variable(std::string(member.key()), member.value(), variables, problems);
  }
  Zipper zipper(variables, problems);
  if (const auto* const zip = dstune.if_contains("zip")) {
    for (const auto& names : zipped_lists(*zip, problems)) zipper.tie(names);
  }
  return variables;
}

}  // namespace dstune
