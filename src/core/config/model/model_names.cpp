#include "core/config/model/model_names.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/model/hub_cache.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/hub_names.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

constexpr std::size_t kMostNear = 4;

std::string_view without_owner(std::string_view name) { return name.substr(name.find('/') + 1); }

// The first word: a name's family.
std::string first_word(std::string_view name) {
  const std::string plain = lower(without_owner(name));
  return plain.substr(0, plain.find_first_of("-_.0123456789"));
}

// What tells a model's kind and size: its first word, and its digits.
std::string kind_of(std::string_view name) {
  std::string kind = first_word(name);
  for (const char letter : without_owner(name)) {
    if (letter >= '0' && letter <= '9') kind += letter;
  }
  return kind;
}

// As suggestion() has it, whatever is written in capitals.
std::string suggestion_in_any_case(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string> plain;
  plain.reserve(known.size());
  for (const auto& each : known) plain.push_back(lower(each));
  const std::string near = did_you_mean(lower(name), plain);
  const auto found = std::ranges::find(plain, near);
  if (near.empty() || found == plain.end()) return "";
  return concat("; did you mean ",
                in_quotes(known[static_cast<std::size_t>(found - plain.begin())]), "?");
}

// The owner is what people leave out, or get wrong.
std::string same_but_for_separators(const std::string& name,
                                    const std::vector<std::string>& known) {
  for (const std::string& each : known) {
    const bool is_same =
        without_separators(without_owner(each)) == without_separators(without_owner(name));
    if (each != name && is_same) return concat("; did you mean ", in_quotes(each), "?");
  }
  return "";
}

std::vector<std::string> all_hub_names() {
  std::vector<std::string> names;
  for (const HubNames& row : hub_names()) {
    for (const std::string_view name : row.each()) names.emplace_back(name);
  }
  return names;
}

// The nearest names of the same family, whatever their size.
std::string list_of_family(const std::string& name, std::vector<std::string> known) {
  std::erase_if(known,
                [&](const std::string& each) { return first_word(each) != first_word(name); });
  const auto distance = [&](const std::string& each) {
    return edit_distance(lower(name), lower(each), name.size() + each.size());
  };
  std::ranges::stable_sort(known, {}, distance);
  known.resize(std::min(known.size(), kMostNear));
  for (auto& each : known) each = in_quotes(each);
  return known.empty() ? "" : concat("; similar presets: ", join(known, ", "));
}

}  // namespace

std::string without_separators(std::string_view name) {
  std::string plain = lower(name);
  std::erase_if(plain, [](char letter) {
    return std::string_view("-_. ").find(letter) != std::string_view::npos;
  });
  return plain;
}

std::vector<ModelSpec> all_presets() {
  std::vector<ModelSpec> all;
  for (const Family& family : families()) {
    for (ModelSpec& spec : family.presets()) {
      spec.family = family.model_type;
      spec.task = family.tasks.front();
      all.push_back(std::move(spec));
    }
  }
  return all;
}

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (auto& spec : all_presets()) names.push_back(std::move(spec.name));
  return names;
}

std::optional<ModelSpec> find_preset(std::string_view name) {
  for (ModelSpec& spec : all_presets()) {
    if (spec.name == name) return std::move(spec);
  }
  return std::nullopt;
}

std::string near_models(const std::string& name) {
  const bool has_owner = name.find('/') != std::string::npos;
  std::vector<std::string> known = model_presets();
  if (has_owner) known.clear();
  for (auto& hub_name : all_hub_names()) known.push_back(std::move(hub_name));
  std::string same = same_but_for_separators(name, known);
  if (!same.empty()) return same;
  auto of_kind = has_owner ? known : model_presets();
  std::erase_if(of_kind, [&](const std::string& each) { return kind_of(each) != kind_of(name); });
  same = suggestion_in_any_case(name, of_kind);
  return same.empty() && has_owner ? list_of_family(name, known) : same;
}

std::string unknown_model(const std::string& name, const std::filesystem::path& cache) {
  const bool may_be_on_hub = is_hub_name(name);
  const std::string near = near_models(name);
  std::string text =
      concat("is ", in_quotes(name),
             may_be_on_hub ? ", neither a file nor a preset" : ", neither a preset nor a file");
  if (may_be_on_hub) {
    text += cache.empty() ? ", and no cache of Hugging Face's hub is known (HOME is not set)"
                          : concat(", and the cache of Hugging Face's hub (", cache.string(),
                                   ") has no config.json for it");
  }
  text += concat(near, near.ends_with('?') ? " accepted: " : "; accepted: ",
                 "a preset or its name on the hub (dstune-mpi --list-models), or the path of a "
                 "Hugging Face config.json");
  if (may_be_on_hub) {
    text += concat("; `hf download ", name, " config.json` downloads it where there is a network");
  }
  return text;
}

}  // namespace dstune
