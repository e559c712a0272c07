#include "core/experiment/activation_checkpointing.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"

namespace dstune {

namespace {

using Unit = ActivationCheckpointing::Unit;

constexpr std::string_view kEvery = "every_";
constexpr std::string_view kGroups = "groups_of_";
constexpr std::string_view kLayers = "_layers";
constexpr std::string_view kReentrant = "_reentrant";
constexpr std::string_view kByDeepSpeed = "_by_deepspeed";

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::optional<ActivationCheckpointing> from_text(std::string_view text) {
  ActivationCheckpointing result;
  result.by_deepspeed = take_suffix(text, kByDeepSpeed);
  result.reentrant = result.by_deepspeed || take_suffix(text, kReentrant);
  if (take_prefix(text, kEvery)) {
    result.unit = Unit::layer;
  } else if (take_prefix(text, kGroups)) {
    result.unit = Unit::group;
  }
  if (!take_suffix(text, kLayers)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.count);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  const bool is_possible = !result.by_deepspeed || result.unit == Unit::group;
  if (!result.is_on() || !is_number || result.count < 1 || !is_possible) return std::nullopt;
  return result;
}

std::string ordinal(std::int64_t number) {
  constexpr std::int64_t kTeens = 10;
  const bool is_teen = number / kTeens % kTeens == 1;
  const std::int64_t last = is_teen ? 0 : number % kTeens;
  return concat(number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string describe_unit(const ActivationCheckpointing& checkpointing) {
  const std::int64_t count = checkpointing.count;
  if (checkpointing.unit == Unit::layer) {
    return count == 1 ? "every layer" : concat("every ", ordinal(count), " layer");
  }
  if (count > 1) return concat("groups of ", count, " layers");
  return checkpointing.by_deepspeed ? "each layer" : "each layer by hand";
}

}  // namespace

json::value to_json(const ActivationCheckpointing& checkpointing) {
  if (!checkpointing.is_on()) return false;
  const bool is_usual = checkpointing == ActivationCheckpointing{.unit = Unit::layer};
  if (is_usual) return true;
  return json::string(concat(checkpointing.unit == Unit::layer ? kEvery : kGroups,
                             checkpointing.count, kLayers,
                             checkpointing.by_deepspeed ? kByDeepSpeed
                             : checkpointing.reentrant  ? kReentrant
                                                        : ""));
}

ActivationCheckpointing activation_checkpointing_from_json(const json::value& value) {
  if (value.is_bool()) return {.unit = value.get_bool() ? Unit::layer : Unit::none};
  std::optional<ActivationCheckpointing> result;
  if (value.is_string()) result = from_text(std::string_view(value.get_string()));
  if (!result) fields::reject("dstune.activation_checkpointing", "way of checkpointing");
  return *result;
}

std::string describe(const ActivationCheckpointing& checkpointing) {
  if (!checkpointing.is_on()) return "off";
  std::string text = describe_unit(checkpointing);
  if (checkpointing.by_deepspeed) return text + ", by DeepSpeed";
  return checkpointing.reentrant ? text + ", reentrant" : text;
}

std::string how_to_switch_on(const ActivationCheckpointing& checkpointing) {
  if (!checkpointing.is_on()) return "";
  const std::string_view reentrant = checkpointing.reentrant ? "True" : "False";
  if (checkpointing.unit == Unit::group) {
    return concat(checkpointing.by_deepspeed ? "deepspeed.checkpointing.checkpoint(...)"
                                             : concat("torch.utils.checkpoint.checkpoint(..., "
                                                      "use_reentrant=",
                                                      reentrant, ")"),
                  " around ", checkpointing.count, checkpointing.count == 1 ? " layer" : " layers");
  }
  const std::string every =
      checkpointing.count == 1 ? "" : concat(", every_n_layers=", checkpointing.count);
  return concat("model.gradient_checkpointing_enable({'use_reentrant': ", reentrant, "}", every,
                ")");
}

}  // namespace dstune
