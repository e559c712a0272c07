#include "core/model/deberta/deberta_checks.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/bert/bert_keys.hpp"

namespace dstune::deberta {

namespace {

constexpr const char* kPosAttType = "pos_att_type";

std::string without_spaces_in_lower_case(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// The kinds that transformers gets by splitting a text at "|"; nothing if it is neither a text nor
/// a list of strings.
std::optional<std::vector<std::string>> kinds_in(const json::value& value) {
  std::vector<std::string> kinds;
  if (value.is_string()) {
    std::string rest = without_spaces_in_lower_case(std::string_view(value.get_string()));
    for (std::size_t end = rest.find('|'); end != std::string::npos; end = rest.find('|')) {
      kinds.push_back(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
    kinds.push_back(rest);
    return kinds;
  }
  if (!value.is_array()) return std::nullopt;
  for (const auto& kind : value.get_array()) {
    if (!kind.is_string()) return std::nullopt;
    kinds.emplace_back(std::string_view(kind.get_string()));
  }
  return kinds;
}

/// `key`, where it is given, must be what another says already.
void must_be(const json::object& config, const char* key, std::int64_t value,
             std::string_view reason, std::string_view pointer, Problems& problems) {
  const auto* given = config.if_contains(key);
  if (given == nullptr || given->is_null() || as_integer(*given) == value) return;
  problems.add(child(pointer, key),
               concat("is ", describe(*given), "; accepted: ", value, ", ", reason));
}

void check_buckets(const DebertaSettings& settings, std::string_view pointer, Problems& problems) {
  if (settings.position_buckets == 0) return;
  const std::int64_t middle = settings.position_buckets / 2;
  if (middle >= 1 && settings.most_distance - 1 > middle) return;
  problems.add(child(pointer, "position_buckets"),
               concat("is ", settings.position_buckets,
                      "; accepted: an integer from 2 on, half of "
                      "it below max_relative_positions - 1, ",
                      settings.most_distance - 1));
}

void check_positions(const DebertaSettings& settings, std::string_view pointer,
                     Problems& problems) {
  if (!settings.relative_attention) return;
  if (!settings.c2p && !settings.p2c) {
    problems.add(child(pointer, kPosAttType),
                 "names none; accepted with relative_attention: c2p, p2c or both");
  } else if (settings.share_att_key && !(settings.c2p && settings.p2c)) {
    problems.add(child(pointer, kPosAttType),
                 "names one; accepted with share_att_key: c2p and p2c; transformers projects for "
                 "both and uses one, which is not modelled");
  }
  check_buckets(settings, pointer, problems);
}

}  // namespace

void read_pos_att_type(const json::object& config, std::string_view pointer,
                       DebertaSettings& settings, Problems& problems) {
  const auto* value = config.if_contains(kPosAttType);
  if (value == nullptr || value->is_null()) return;
  const auto kinds = kinds_in(*value);
  const auto known = [](const std::string& kind) { return kind == "c2p" || kind == "p2c"; };
  if (!kinds || !std::all_of(kinds->begin(), kinds->end(), known)) {
    problems.add(child(pointer, kPosAttType),
                 concat("is ", describe(*value),
                        "; accepted: \"c2p|p2c\", one of the two, or a "
                        "list of them"));
    return;
  }
  settings.c2p = std::find(kinds->begin(), kinds->end(), "c2p") != kinds->end();
  settings.p2c = std::find(kinds->begin(), kinds->end(), "p2c") != kinds->end();
}

void check(const json::object& config, const ModelSpec& spec, const DebertaSettings& settings,
           std::string_view pointer, Problems& problems) {
  const auto faults = problems.count();
  bert::check_common(config, spec, settings.common, "num_attention_heads", "hidden_size", pointer,
                     problems);
  check_positions(settings, pointer, problems);
  if (problems.count() > faults) return;
  must_be(config, "attention_head_size", spec.head_size(), "hidden_size / num_attention_heads",
          pointer, problems);
  must_be(config, "pooler_hidden_size", spec.hidden_size, "hidden_size", pointer, problems);
  if (settings.conv_kernel_size > 0 && settings.conv_kernel_size % 2 == 0) {
    problems.add(child(pointer, "conv_kernel_size"),
                 concat("is ", settings.conv_kernel_size,
                        "; accepted: an odd integer, or 0: any other makes sequences shorter"));
  }
}

}  // namespace dstune::deberta
