// Plans that a library makes of shapes, and the shapes that it has none for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"

namespace dstune::cuda {

/// The library cannot do it, now and later.
class NoPlanError : public Error {
 public:
  using Error::Error;
};

/// Whether a library that has one error for everything says in its message that it found no memory.
inline bool tells_of_no_memory(std::string_view message) {
  constexpr std::array<std::string_view, 4> kSigns = {"ALLOC_FAILED", "ALLOCATION_FAILED",
                                                      "MemoryAllocation", "out of memory"};
  return std::any_of(kSigns.begin(), kSigns.end(), [message](std::string_view sign) {
    return message.find(sign) != std::string_view::npos;
  });
}

template <class Shape, class Plan>
class PlanCache {
 public:
  static constexpr std::size_t kMostPlans = 512;

  /// The plan of `shape`, made when it is first asked for and kept; nullptr if there is none, which
  /// is kept too, or if there are kMostPlans others: making one takes far longer than using it. Why
  /// there is none goes to the log, the first time only.
  /// @param make  gives a std::unique_ptr<Plan>, or throws NoPlanError; what else it throws is
  ///              passed on, and the next call tries again
  template <class Make>
  const Plan* find(const Shape& shape, Make&& make) {
    const auto known = plans_.find(shape);
    if (known != plans_.end()) return known->second.get();
    if (plans_.size() >= kMostPlans) {
      say(concat("there are more than ", kMostPlans, " shapes of attention"));
      return nullptr;
    }
    std::unique_ptr<Plan> made;
    try {
      made = make();
    } catch (const NoPlanError& error) {
      say(error.what());
    }
    return (plans_[shape] = std::move(made)).get();
  }

  /// Why a plan is not used, unless something was said before.
  void say(std::string_view reason) {
    if (has_said_) return;
    has_said_ = true;
    log_warning(concat("attention is computed by kernels of our own, with times of their own, ",
                       "where cuDNN has no plan: ", printable(reason),
                       "; --list-backends shows which cuDNN is used"));
  }

 private:
  std::map<Shape, std::unique_ptr<Plan>> plans_;
  bool has_said_ = false;
};

}  // namespace dstune::cuda
