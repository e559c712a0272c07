// The forms in which results leave the program, by name.
#pragma once

#include "core/base/listed.hpp"

namespace dstune {

// clang-format off
/// The formats of --format. A new one is a file of core/report/formats that defines
/// format_as_NAME() (document.hpp), and its line here; the facts are TableFormatTraits'.
#define DSTUNE_TABLE_FORMATS(X)   \
  X(table, .is_for_people = true) \
  X(json)

/// The forms of --emit, the optimum beside the DeepSpeed JSON. A new one is a file of
/// core/report/files that defines NAME_text() (emitted.hpp), and its line here.
#define DSTUNE_EMITTED_FORMS(X)                                       \
  X(accelerate, .file = "accelerate", .extension = "yaml")            \
  X(transformers, .file = "training_arguments", .extension = "txt")
// clang-format on

/// What --progress says: how the log shows that a run goes on.
enum class ProgressStyle {
  automatic,  ///< terminal if standard error is one, else lines
  lines,      ///< a line for each event
  terminal,   ///< the same, and one more line that is rewritten
  none        ///< nothing of experiments
};
/// In the order of ProgressStyle.
inline constexpr const char* kProgressStyleNames = "auto|lines|terminal|none";

enum class TableFormat { DSTUNE_TABLE_FORMATS(DSTUNE_LISTED_NAME) };
enum class EmittedForm { DSTUNE_EMITTED_FORMS(DSTUNE_LISTED_NAME) };

inline constexpr const char* kTableFormatNames = &(DSTUNE_TABLE_FORMATS(DSTUNE_LISTED_CHOICE))[1];
inline constexpr const char* kEmittedFormNames = &(DSTUNE_EMITTED_FORMS(DSTUNE_LISTED_CHOICE))[1];

struct TableFormatTraits {
  std::string_view name;
  /// It has the remarks that a result must be read with; else the log has them.
  bool is_for_people = false;
};
/// In the order of TableFormat.
inline constexpr TableFormatTraits kTableFormats[] = {DSTUNE_TABLE_FORMATS(DSTUNE_LISTED_ROW)};

/// It is in FILE_optimal.EXTENSION, or FILE_provisional.EXTENSION.
struct EmittedFormTraits {
  std::string_view name;
  const char* file;
  const char* extension;
};
/// In the order of EmittedForm.
inline constexpr EmittedFormTraits kEmittedForms[] = {DSTUNE_EMITTED_FORMS(DSTUNE_LISTED_ROW)};

}  // namespace dstune
