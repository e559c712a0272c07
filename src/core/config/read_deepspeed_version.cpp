#include "core/config/read_deepspeed_version.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/text.hpp"

namespace dstune {
namespace {

std::string accepted() {
  return concat("accepted: a release from ", to_text(kOldestDeepSpeed), " to ",
                to_text(kNewestDeepSpeed), " such as \"", to_text(kNewestDeepSpeed), "\"");
}

DeepSpeedVersion at_most_the_newest(const DeepSpeedVersion& version, std::string_view where,
                                    Problems& problems) {
  if (version <= kNewestDeepSpeed) return version;
  problems.warn(where, concat("is ", to_text(version), ", which is newer than all known releases: ",
                              to_text(kNewestDeepSpeed), " is used instead"));
  return kNewestDeepSpeed;
}

DeepSpeedVersion version_of(std::string_view text, Problems& problems) {
  const auto version = parse_deepspeed_version(text);
  if (version && *version >= kOldestDeepSpeed) {
    return at_most_the_newest(*version, kVersionPointer, problems);
  }
  problems.add(kVersionPointer, concat("is ", in_quotes(text), "; ", accepted()));
  return kNewestDeepSpeed;
}

// It was found by itself: tuning for another release is no fault of the user's.
DeepSpeedVersion version_of_installed(std::string_view text, Problems& problems) {
  constexpr std::string_view kOption = "--installed-deepspeed";
  const auto version = parse_deepspeed_version(text);
  if (version && *version >= kOldestDeepSpeed) {
    return at_most_the_newest(*version, kOption, problems);
  }
  const DeepSpeedVersion taken = version ? kOldestDeepSpeed : kNewestDeepSpeed;
  problems.warn(kOption, concat("is ", in_quotes(text), "; ", accepted(), ": ", to_text(taken),
                                " is used instead"));
  return taken;
}

const json::value* find_by_pointer(const json::object& file, std::string_view pointer) {
  const json::object* object = &file;
  const auto path = split(pointer.substr(1), '/');
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const auto* const found = object->if_contains(path[i]);
    object = found == nullptr ? nullptr : found->if_object();
    if (object == nullptr) return nullptr;
  }
  return object->if_contains(path.back());
}

// DeepSpeed takes the keys of stage 3 without "stage3_" too.
std::string without_stage3(std::string_view pointer) {
  constexpr std::string_view kPrefix = "stage3_";
  std::string name(pointer);
  const auto place = name.find(kPrefix);
  if (place != std::string::npos) name.erase(place, kPrefix.size());
  return name;
}

bool searches(const std::vector<AxisGroup>& groups, std::string_view pointer) {
  return std::ranges::any_of(groups, [&](const AxisGroup& group) {
    return std::ranges::any_of(group.tied, [&](const Axis& axis) {
      return axis.pointer == pointer || axis.pointer.starts_with(concat(pointer, '/'));
    });
  });
}

bool searches(const SpaceConfig& space, std::string_view pointer) {
  return searches(space.all_stages, pointer) ||
         std::ranges::any_of(space.of_stage,
                             [&](const auto& own) { return searches(own.second, pointer); });
}

// The part of an experiment's JSON that is not DeepSpeed's.
json::object& own_part(json::object& deepspeed) {
  json::value& ours = deepspeed["dstune"];
  if (!ours.is_object()) ours.emplace_object();
  return ours.get_object();
}

}  // namespace

DeepSpeedVersion read_deepspeed_version(const json::object& file,
                                        const std::optional<std::string>& installed,
                                        Problems& problems) {
  const auto* const given = find_by_pointer(file, kVersionPointer);
  if (given != nullptr && given->is_string()) {
    return version_of(std::string_view(given->get_string()), problems);
  }
  return installed ? version_of_installed(*installed, problems) : kNewestDeepSpeed;
}

void refuse_later_keys(const json::object& file, const SpaceConfig& space,
                       const DeepSpeedVersion& version, Problems& problems) {
  for (const KeySince& added : added_keys()) {
    if (version >= added.since) continue;
    const std::string other_name = without_stage3(added.pointer);
    for (const std::string& name : {std::string(added.pointer), other_name}) {
      if (find_by_pointer(file, name) == nullptr && !searches(space, name)) continue;
      problems.add(name, concat("is not known to DeepSpeed ", to_text(version), "; accepted: from ",
                                to_text(added.since), " on"));
      break;
    }
  }
}

void set_deepspeed_version(const DeepSpeedVersion& version, json::object& deepspeed) {
  if (version != kNewestDeepSpeed) own_part(deepspeed)["deepspeed_version"] = to_text(version);
}

const json::value* find_zero_init(const json::object& file) {
  return find_by_pointer(file, "/dstune/zero_init");
}

void set_zero_init(const json::object& file, json::object& deepspeed) {
  const auto* const given = find_zero_init(file);
  if (given != nullptr && *given == false) own_part(deepspeed)["zero_init"] = false;
}

std::string note_of_zero_init(const json::object& file, const DeepSpeedVersion& version) {
  if (find_zero_init(file) != nullptr || behaviour_of(version).replaces_linear_of_any_model) {
    return "";
  }
  return concat(
      "the model is assumed to be created under zero.Init, as by from_pretrained when the Trainer "
      "has its configuration; without it DeepSpeed ",
      to_text(version), " keeps the weights of linear layers in stage 3 from forward to ",
      "backward: \"dstune\": {\"zero_init\": false}");
}

}  // namespace dstune
