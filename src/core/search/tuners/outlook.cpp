#include "core/search/tuners/outlook.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <utility>

#include "core/base/linear_algebra.hpp"
#include "core/search/predict/chances.hpp"

namespace dstune {
namespace {

constexpr std::size_t kDraws = 1000;
constexpr std::size_t kDrawn = 64;  // the untried candidates that are drawn
constexpr std::size_t kMostContenders = 6;
constexpr double kRealChance = 0.05;
constexpr double kNoChance = 0.001;

/// Standard normal numbers that are the same with every compiler (Box and Muller).
class Normals {
 public:
  double next() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  /// In (0, 1].
  double uniform() { return (static_cast<double>(generator_() >> 11U) + 1) * 0x1p-53; }

  std::mt19937_64 generator_{1};
};

/// Draws of the speeds of some candidates together.
class Draws {
 public:
  Draws(const Belief& belief, const std::vector<Prospect>& prospects,
        const std::vector<std::size_t>& drawn)
      : lower_(drawn.size(), std::vector<double>(drawn.size())) {
    for (std::size_t j = 0; j < drawn.size(); ++j) {
      means_.push_back(prospects[drawn[j]].log_work - belief.mean(drawn[j]));
      for (std::size_t i = j; i < drawn.size(); ++i) {
        lower_[i][j] = belief.covariance(drawn[i], drawn[j]);
      }
    }
    // Candidates whose speeds are known from one another leave no variance of their own.
    constexpr double kLeastVariance = 1e-12;
    decompose(lower_, kLeastVariance);
  }

  std::vector<double> next() {
    std::vector<double> normals;
    std::vector<double> speeds = means_;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      normals.push_back(normals_.next());
      for (std::size_t k = 0; k <= i; ++k) speeds[i] += lower_[i][k] * normals[k];
    }
    return speeds;
  }

 private:
  std::vector<double> means_;
  std::vector<std::vector<double>> lower_;  ///< L with L L^T = the covariance
  Normals normals_;
};

class Looking {
 public:
  Looking(const Belief& belief, const std::vector<Prospect>& prospects)
      : belief_(belief), prospects_(prospects) {}

  Outlook look() {
    for (std::size_t i = 0; i < prospects_.size(); ++i) {
      if (prospects_[i].is_measured && (!found_.best || is_better(i, *found_.best))) {
        found_.best = i;
      }
    }
    if (found_.best) {
      weigh_chances();
      draw_untried();
      draw_measured();
    }
    order();
    return std::move(found_);
  }

 private:
  double speed(std::size_t i) const { return prospects_[i].log_work - belief_.mean(i); }
  bool is_better(std::size_t i, std::size_t other) const {
    if (speed(i) != speed(other)) return speed(i) > speed(other);
    return prospects_[i].simplicity < prospects_[other].simplicity;
  }

  void weigh_chances() {
    chances_.resize(prospects_.size());
    const std::size_t best = *found_.best;
    for (std::size_t i = 0; i < prospects_.size(); ++i) {
      if (prospects_[i].is_tried) continue;
      const double variance =
          belief_.variance(i) + belief_.variance(best) - 2 * belief_.covariance(i, best);
      const Guess ahead{speed(i) - speed(best), std::sqrt(std::fmax(variance, 0))};
      chances_[i] = std::ldexp(ahead.chance_above(std::log1p(kBetterBy)), -prospects_[i].warnings);
      if (!found_.likeliest || chances_[i] > found_.chance_of_likeliest) {
        found_.likeliest = i;
        found_.chance_of_likeliest = chances_[i];
      }
      untried_.push_back(i);
    }
    std::ranges::stable_sort(untried_, std::greater<>(),
                             [this](std::size_t i) { return chances_[i]; });
  }

  void draw_untried() {
    leads_.resize(prospects_.size());
    std::vector<std::size_t> drawn{*found_.best};
    drawn.insert(drawn.end(), untried_.begin(),
                 untried_.begin() + static_cast<std::ptrdiff_t>(std::min(untried_.size(), kDrawn)));
    Draws draws(belief_, prospects_, drawn);
    std::size_t better = 0;
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      const std::vector<double> speeds = draws.next();
      std::size_t first = 0;
      for (std::size_t i = 1; i < drawn.size(); ++i) {
        const bool fits =
            draw % (std::size_t{1} << std::min(prospects_[drawn[i]].warnings, 16)) == 0;
        if (fits && speeds[i] > speeds[first]) first = i;
      }
      if (first > 0) ++leads_[drawn[first]];
      if (speeds[first] > speeds[0] + std::log1p(kBetterBy)) ++better;
    }
    const double seen = static_cast<double>(better) / static_cast<double>(kDraws);
    found_.chance_of_any = std::max(seen, found_.chance_of_likeliest);
  }

  void draw_measured() {
    std::vector<std::size_t> measured;
    for (std::size_t i = 0; i < prospects_.size(); ++i) {
      if (prospects_[i].is_measured) measured.push_back(i);
    }
    // Those whose speeds are known to be the same are equal in every draw, which the first wins.
    std::ranges::stable_sort(
        measured, [this](std::size_t i, std::size_t other) { return is_better(i, other); });
    measured.resize(std::min(measured.size(), kDrawn));
    Draws draws(belief_, prospects_, measured);
    std::vector<std::size_t> wins(prospects_.size());
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      const std::vector<double> speeds = draws.next();
      const auto first = std::ranges::max_element(speeds) - speeds.begin();
      ++wins[measured[static_cast<std::size_t>(first)]];
    }
    std::ranges::stable_sort(measured, std::greater<>(), [&](std::size_t i) { return wins[i]; });
    for (const std::size_t i : measured) {
      const bool is_real = static_cast<double>(wins[i]) >= kRealChance * kDraws;
      const bool is_needed = found_.contenders.size() < 2;
      if ((is_real || is_needed) && found_.contenders.size() < kMostContenders) {
        found_.contenders.push_back(i);
      }
    }
  }

  // Without a measurement the first is the one that is predicted to be the fastest; the others are
  // those that may be faster than it.
  void draw_unmeasured() {
    leads_.resize(prospects_.size());
    chances_.resize(prospects_.size());
    std::vector<std::size_t> drawn = found_.next;
    drawn.resize(std::min(drawn.size(), kDrawn));
    Draws draws(belief_, prospects_, drawn);
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      const std::vector<double> speeds = draws.next();
      ++leads_[drawn[static_cast<std::size_t>(std::ranges::max_element(speeds) - speeds.begin())]];
    }
    leads_[drawn.front()] = kDraws;
  }

  void order() {
    for (std::size_t i = 0; i < prospects_.size(); ++i) {
      if (prospects_[i].is_open) found_.next.push_back(i);
    }
    if (found_.next.empty()) return;
    std::ranges::stable_sort(found_.next, std::greater<>(),
                             [this](std::size_t i) { return speed(i); });
    if (!found_.best) draw_unmeasured();
    std::ranges::stable_sort(found_.next, std::greater<>(),
                             [this](std::size_t i) { return std::pair(leads_[i], chances_[i]); });
    if (!found_.best) return;
    const auto hopeless = std::ranges::find_if(
        found_.next, [this](std::size_t i) { return leads_[i] == 0 && chances_[i] < kNoChance; });
    found_.next.erase(std::max(hopeless, found_.next.begin() + 1), found_.next.end());
  }

  const Belief& belief_;
  const std::vector<Prospect>& prospects_;
  Outlook found_;
  std::vector<double> chances_;       ///< of being better, by candidate
  std::vector<std::size_t> untried_;  ///< the likeliest first
  std::vector<std::size_t> leads_;    ///< by candidate: the draws in which it is the best of all
};

}  // namespace

Outlook outlook_of(const Belief& belief, const std::vector<Prospect>& prospects) {
  return Looking(belief, prospects).look();
}

}  // namespace dstune
