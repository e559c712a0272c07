#include "core/config/model/model_info.hpp"

#include <cmath>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr double kRounding = 0.05;
constexpr std::int64_t kMostParameters = 1'000'000'000'000'000;
constexpr std::int64_t kLargestSize = 1'000'000'000;

constexpr KeyRule kModelInfoRules[] = {
    boolean("profile").or_null(),
    integer("num_params", 1, kMostParameters).or_null(),
    integer("hidden_size", 1, kLargestSize).or_null(),
    integer("num_layers", 1, kLargestSize).or_null(),
};
constexpr Section kModelInfo{
    .rules = kModelInfoRules, .other_keys = true, .other_keys_warning = deepspeed_table::kUnknown};

constexpr const char* kPointer = "/autotuning/model_info";

void check_size(const char* key, std::optional<std::int64_t> given, std::int64_t actual,
                Problems& problems) {
  if (!given || *given == actual) return;
  problems.add(child(kPointer, key), concat("is ", *given, ", but the model of dstune.model has ",
                                            actual, "; remove one of the two"));
}

}  // namespace

GivenModelInfo read_model_info(const json::value& section, std::string_view pointer,
                               Problems& problems) {
  const SectionReader reader(section, kModelInfo, pointer, problems);
  GivenModelInfo info;
  reader.read("num_params", info.num_params);
  reader.read("hidden_size", info.hidden_size);
  reader.read("num_layers", info.num_layers);
  return info;
}

void check_model_info(const GivenModelInfo& info, const ModelSpec& model, std::int64_t parameters,
                      Problems& problems) {
  check_size("hidden_size", info.hidden_size, model.hidden_size, problems);
  check_size("num_layers", info.num_layers, model.num_layers, problems);
  const auto own = static_cast<double>(parameters);
  const bool is_near =
      !info.num_params || std::abs(static_cast<double>(*info.num_params) - own) <= kRounding * own;
  if (!is_near) check_size("num_params", info.num_params, parameters, problems);
}

}  // namespace dstune
