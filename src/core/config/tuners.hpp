// The tuners by name, and what is known of each before it is made.
#pragma once

#include <string_view>

namespace dstune {

/// X(name, facts...) for each tuner of ours, and for each of DeepSpeed's: the names that
/// dstune.tuner takes, in this order. A new tuner is its file, which defines make_NAME_tuner()
/// (tuner_table.hpp), and its line here; the facts are TunerTraits' members.
// clang-format off
#define DSTUNE_OWN_TUNERS(X)    \
  X(fast, .has_pool = false)    \
  X(guided)
#define DSTUNE_DEEPSPEED_TUNERS(X) \
  X(gridsearch)                    \
  X(random)                        \
  X(model_based)
// clang-format on

struct TunerTraits {
  std::string_view name;
  /// It chooses from a pool of configurations, whose batch may be fixed; else it finds its way
  /// through micro-batches by itself, and confirms its optimum by itself.
  bool has_pool = true;
  /// autotuning.tuner_type takes it, and with fast mode off it searches stage after stage.
  bool is_deepspeeds = false;
};

#define DSTUNE_TUNER_CHOICE(name, ...) "|" #name
inline constexpr std::string_view kTunerNames =
    std::string_view(DSTUNE_OWN_TUNERS(DSTUNE_TUNER_CHOICE)
                         DSTUNE_DEEPSPEED_TUNERS(DSTUNE_TUNER_CHOICE))
        .substr(1);
inline constexpr std::string_view kDeepspeedTunerNames =
    std::string_view(DSTUNE_DEEPSPEED_TUNERS(DSTUNE_TUNER_CHOICE)).substr(1);
#undef DSTUNE_TUNER_CHOICE

#define DSTUNE_OWN_TUNER(tuner, ...) TunerTraits{.name = #tuner, __VA_ARGS__},
#define DSTUNE_DEEPSPEED_TUNER(tuner, ...) TunerTraits{.name = #tuner, .is_deepspeeds = true},
inline constexpr TunerTraits kTuners[] = {DSTUNE_OWN_TUNERS(DSTUNE_OWN_TUNER)
                                              DSTUNE_DEEPSPEED_TUNERS(DSTUNE_DEEPSPEED_TUNER)};
#undef DSTUNE_OWN_TUNER
#undef DSTUNE_DEEPSPEED_TUNER

/// nullptr if no tuner is called so.
constexpr const TunerTraits* find_tuner(std::string_view name) {
  for (const TunerTraits& tuner : kTuners) {
    if (tuner.name == name) return &tuner;
  }
  return nullptr;
}

}  // namespace dstune
