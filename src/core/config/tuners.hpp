// The tuners by name, and what is known of each before it is made.
#pragma once

#include "core/base/listed.hpp"

namespace dstune {

// clang-format off
/// Our tuners and DeepSpeed's: the names that dstune.tuner takes, in this order. A new tuner is its
/// file, which defines make_NAME_tuner() (tuner_table.hpp), and its line here; the facts are
/// TunerTraits'.
#define DSTUNE_OWN_TUNERS(X) \
  X(fast, .has_pool = false) \
  X(guided)
#define DSTUNE_DEEPSPEED_TUNERS(X)       \
  X(gridsearch, .is_deepspeeds = true)   \
  X(random, .is_deepspeeds = true)       \
  X(model_based, .is_deepspeeds = true)
#define DSTUNE_TUNERS(X) DSTUNE_OWN_TUNERS(X) DSTUNE_DEEPSPEED_TUNERS(X)
// clang-format on

struct TunerTraits {
  std::string_view name;
  /// It chooses from a pool of configurations, whose batch may be fixed; else it finds its way
  /// through micro-batches by itself, and confirms its optimum by itself.
  bool has_pool = true;
  /// autotuning.tuner_type takes it, and with fast mode off it searches stage after stage.
  bool is_deepspeeds = false;
};
inline constexpr TunerTraits kTuners[] = {DSTUNE_TUNERS(DSTUNE_LISTED_ROW)};

/// TunerTraits::has_pool of dstune.tuner; true for "", where the tuner is not given by that key.
constexpr bool has_pool(std::string_view tuner) {
  const TunerTraits* const found = find_row(kTuners, tuner);
  return found == nullptr || found->has_pool;
}

inline constexpr const char* kTunerNames = &(DSTUNE_TUNERS(DSTUNE_LISTED_CHOICE))[1];
inline constexpr const char* kDeepspeedTunerNames =
    &(DSTUNE_DEEPSPEED_TUNERS(DSTUNE_LISTED_CHOICE))[1];

}  // namespace dstune
