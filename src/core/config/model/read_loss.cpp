#include "core/config/model/read_loss.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr const char* kTrainer = "/dstune/trainer";
constexpr std::string_view kTrainers = "transformers|trl|custom";

/// The first two numbers of a version.
struct Version {
  int major = 0;
  int minor = 0;

  auto operator<=>(const Version&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
};

struct Bundle {
  std::string_view trainer;
  Version since;
  LossSettings settings;
};

// The versions of a trainer ascend. A trainer is read as its newest version if none is given.
constexpr std::array<Bundle, 5> kBundles{{
    {"transformers", {4, 49}, {LossKind::plain, false}},
    {"trl", {0, 0}, {LossKind::plain, false}},
    {"trl", {1, 7}, {LossKind::chunked, false}},
    {"trl", {1, 15}, {LossKind::tiled, false}},
    {"custom", {0, 0}, {LossKind::plain, true}},
}};

/// "4.57.1" -> 4, 57
std::optional<Version> version_from(std::string_view text) {
  std::array<int, 2> numbers{};
  const auto parts = split(text, '.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    int number = 0;
    const char* const end = parts[i].data() + parts[i].size();
    const auto [stop, error] = std::from_chars(parts[i].data(), end, number);
    if (error != std::errc() || stop != end || number < 0) return std::nullopt;
    if (i < numbers.size()) numbers.at(i) = number;
  }
  return Version{numbers[0], numbers[1]};
}

const Bundle* find_bundle(std::string_view trainer, const std::optional<Version>& version) {
  const Bundle* found = nullptr;
  for (const Bundle& bundle : kBundles) {
    if (bundle.trainer == trainer && (!version || bundle.since <= *version)) found = &bundle;
  }
  return found;
}

LossSettings settings_of(std::string_view text, Problems& problems) {
  const std::size_t end = std::min(text.find("=="), text.size());
  const std::string name(trim(text.substr(0, end)));
  const auto checked =
      check_value(json::value(name), rules::choice("trainer", kTrainers), kTrainer, problems);
  if (!checked) return {};
  std::optional<Version> version;
  if (end < text.size()) {
    version = version_from(trim(text.substr(end + 2)));
    if (!version || name == "custom") {
      problems.add(kTrainer, concat("is ", in_quotes(text),
                                    "; accepted: \"transformers\", \"trl\", "
                                    "each alone or with a version such as \"trl==1.7.0\", or "
                                    "\"custom\""));
      return {};
    }
  }
  if (const Bundle* bundle = find_bundle(name, version)) return bundle->settings;
  problems.add(kTrainer,
               concat("is ", in_quotes(text),
                      "; accepted: transformers from 4.49 on; before that it copied the shifted "
                      "logits, which is not modelled"));
  return {};
}

}  // namespace

LossSettings read_loss(const SectionReader& dstune, Problems& problems) {
  LossSettings settings;
  std::string text;
  dstune.read("trainer", text);
  if (!text.empty()) settings = settings_of(text, problems);
  text.clear();
  dstune.read("loss", text);
  if (const auto kind = loss_from(text)) settings.kind = *kind;
  std::optional<bool> keep;
  dstune.read("keep_logits", keep);
  settings.keep_logits = keep.value_or(settings.keep_logits && settings.kind == LossKind::plain);
  if (settings.keep_logits && settings.kind != LossKind::plain) {
    problems.add("/dstune/keep_logits",
                 concat("is true, but a loss that is \"", name_of(settings.kind),
                        "\" has no logits to keep; accepted: false, or true with \"loss\": "
                        "\"plain\""));
    settings.keep_logits = false;
  }
  return settings;
}

void check_loss(const LossSettings& loss, Task task, Problems& problems) {
  if (task == Task::causal_lm || loss == LossSettings{}) return;
  problems.add("/dstune/loss", concat("is ", in_quotes(describe(loss)),
                                      ", which only causal language models have, ", "not ",
                                      name_of(task), "; accepted: \"plain\" without kept logits"));
}

}  // namespace dstune
