// The forms in which results leave the program, by name.
#pragma once

#include <optional>
#include <string_view>

namespace dstune {

/// X(name, facts...) for each format of --format. A new one is a file of core/report/formats that
/// defines format_as_NAME() (document.hpp), and its line here; the facts are TableFormatTraits'.
// clang-format off
#define DSTUNE_TABLE_FORMATS(X)   \
  X(table, .is_for_people = true) \
  X(json)

/// X(name, "FILE", "EXTENSION") for each form of --emit, the optimum beside the DeepSpeed JSON, in
/// FILE_optimal.EXTENSION. A new one is a file of core/report/files that defines NAME_text()
/// (emitted.hpp), and its line here.
#define DSTUNE_EMITTED_FORMS(X)                 \
  X(accelerate, "accelerate", "yaml")           \
  X(transformers, "training_arguments", "txt")
// clang-format on

#define DSTUNE_NAME(name, ...) name,
enum class TableFormat { DSTUNE_TABLE_FORMATS(DSTUNE_NAME) };
enum class EmittedForm { DSTUNE_EMITTED_FORMS(DSTUNE_NAME) };
#undef DSTUNE_NAME

#define DSTUNE_CHOICE(name, ...) "|" #name
inline constexpr const char* kTableFormatNames = &(DSTUNE_TABLE_FORMATS(DSTUNE_CHOICE))[1];
inline constexpr const char* kEmittedFormNames = &(DSTUNE_EMITTED_FORMS(DSTUNE_CHOICE))[1];
#undef DSTUNE_CHOICE

struct TableFormatTraits {
  std::string_view name;
  /// It has the remarks that a result must be read with; else the log has them.
  bool is_for_people = false;
};

#define DSTUNE_TRAITS(format, ...) TableFormatTraits{.name = #format, __VA_ARGS__},
/// In the order of TableFormat.
inline constexpr TableFormatTraits kTableFormats[] = {DSTUNE_TABLE_FORMATS(DSTUNE_TRAITS)};
#undef DSTUNE_TRAITS

constexpr const TableFormatTraits& traits_of(TableFormat format) {
  return kTableFormats[static_cast<int>(format)];
}

struct EmittedFormTraits {
  std::string_view name;
  const char* file;
  const char* extension;
};

#define DSTUNE_TRAITS(form, file, extension) EmittedFormTraits{#form, file, extension},
/// In the order of EmittedForm.
inline constexpr EmittedFormTraits kEmittedForms[] = {DSTUNE_EMITTED_FORMS(DSTUNE_TRAITS)};
#undef DSTUNE_TRAITS

/// None if no form is called so.
template <class Form, class Traits>
constexpr std::optional<Form> find_form(const Traits& forms, std::string_view name) {
  int index = 0;
  for (const auto& form : forms) {
    if (form.name == name) return static_cast<Form>(index);
    ++index;
  }
  return std::nullopt;
}

}  // namespace dstune
