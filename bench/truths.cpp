#include "bench/truths.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "core/base/text.hpp"

namespace dstune::bench {
namespace {

double log2_micro_batch(const Case& one) {
  return std::log2(static_cast<double>(one.step.micro_batch));
}
bool overlaps(const Case& one) { return one.step.stage > 0 && one.step.overlap_comm; }
bool has_large_bucket(const Case& one) {
  return one.step.stage > 0 && one.step.reduce_bucket_size >= 4'000'000;
}

// The sizes are those that one meets: 3 to 20 %.
const std::array kTruths = std::to_array<Truth>({
    {"as modelled", [](const Case&) { return 1.0; }},
    // The program adds this time to its steps, and predicts it.
    {"no host overhead",
     [](const Case& one) { return 1 - one.physics.at(StepPart::host) / one.measured; }},
    {"checkpointing 15 % cheaper",
     [](const Case& one) { return one.step.checkpointing.is_on() ? 0.85 : 1; }},
    {"checkpointing 10 % dearer",
     [](const Case& one) { return one.step.checkpointing.is_on() ? 1.1 : 1; }},
    {"overlap costs compute",
     [](const Case& one) { return overlaps(one) ? 1.03 + 0.15 * one.compute_share() : 1; }},
    {"overlap gains 10 %", [](const Case& one) { return overlaps(one) ? 0.9 : 1; }},
    {"the last 7 % of memory are slow",
     [](const Case& one) { return one.memory_share > 0.93 ? 1.2 : 1; }},
    {"stage 0 is 15 % slower", [](const Case& one) { return one.step.stage == 0 ? 1.15 : 1; }},
    {"stage 1 is 12 % slower", [](const Case& one) { return one.step.stage == 1 ? 1.12 : 1; }},
    {"stage 2 is 12 % faster", [](const Case& one) { return one.step.stage == 2 ? 0.88 : 1; }},
    {"stage 3 is 15 % faster", [](const Case& one) { return one.step.stage == 3 ? 0.85 : 1; }},
    {"large micro-batches are slow",
     [](const Case& one) { return 1 + 0.07 * std::max(log2_micro_batch(one) - 1, 0.0); }},
    {"large micro-batches are fast",
     [](const Case& one) { return 1 / (1 + 0.05 * log2_micro_batch(one)); }},
    {"micro-batch 8 is 12 % faster",
     [](const Case& one) { return one.step.micro_batch == 8 ? 0.88 : 1; }},
    {"large buckets are slow", [](const Case& one) { return has_large_bucket(one) ? 1.08 : 1; }},
    {"small buckets are fast",
     [](const Case& one) {
       return one.step.stage > 0 && one.step.reduce_bucket_size < 300'000 ? 0.92 : 1;
     }},
    {"one bucket size is fast",
     [](const Case& one) {
       return one.step.stage > 0 && one.step.reduce_bucket_size == 1'000'000 ? 0.93 : 1;
     }},
    {"contiguous gradients are slow",
     [](const Case& one) {
       return one.step.stage == 2 && one.step.contiguous_gradients ? 1.07 : 1;
     }},
    {"prefetching hurts",
     [](const Case& one) {
       return one.step.stage == 3 && one.step.prefetch_bucket_size > 0 ? 1.1 : 1;
     }},
    {"persistence gains 15 %",
     [](const Case& one) {
       return one.step.stage == 3 && one.step.param_persistence_threshold >= 1'000'000 ? 0.85 : 1;
     }},
    {"stage 3 likes large buckets",
     [](const Case& one) { return one.step.stage == 3 && has_large_bucket(one) ? 0.86 : 1; }},
    {"stage 1 likes overlap",
     [](const Case& one) { return one.step.stage == 1 && overlaps(one) ? 0.9 : 1; }},
    {"large micro-batches like overlap",
     [](const Case& one) { return one.step.micro_batch >= 8 && overlaps(one) ? 0.9 : 1; }},
    {"communication takes twice as long",
     [](const Case& one) { return 1 + one.communication_share(); }},
    {"passes take twice as long",
     [](const Case& one) {
       return 1 + (one.physics.at(StepPart::model_passes) + one.physics.at(StepPart::step_passes)) /
                      one.physics.total();
     }},
});

using Factors = std::vector<double>;

/// A factor for each value of each setting, log-normal, of a part of the settings.
Factors by_value(const std::vector<Case>& cases, std::uint64_t seed, double spread, double part) {
  std::mt19937_64 generator(seed);
  Factors factors(cases.size(), 1);
  const std::array<std::function<std::string(const StepConfig&)>, 8> settings{
      [](const StepConfig& s) { return concat(s.stage); },
      [](const StepConfig& s) { return concat(s.micro_batch); },
      [](const StepConfig& s) { return concat(s.checkpointing.is_on()); },
      [](const StepConfig& s) { return concat(s.stage > 0 ? s.reduce_bucket_size : 0); },
      [](const StepConfig& s) { return concat(s.stage > 0 && s.overlap_comm); },
      [](const StepConfig& s) { return concat(s.stage == 2 && s.contiguous_gradients); },
      [](const StepConfig& s) { return concat(s.stage == 3 ? s.prefetch_bucket_size : -1); },
      [](const StepConfig& s) { return concat(s.stage == 3 ? s.param_persistence_threshold : -1); },
  };
  for (const auto& setting : settings) {
    const bool counts = std::uniform_real_distribution<double>()(generator) < part;
    std::map<std::string, double> drawn;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto [value, is_new] = drawn.try_emplace(setting(cases[i].step), 0);
      if (is_new) value->second = spread * std::normal_distribution<double>()(generator);
      if (counts) factors[i] *= std::exp(value->second);
    }
  }
  return factors;
}

const std::array kDrawn = std::to_array<DrawnTruth>({
    {"every value is off by 5 %",
     [](const std::vector<Case>& cases, std::uint64_t seed) {
       return by_value(cases, seed, 0.05, 1);
     }},
    {"some settings are off by 12 %",
     [](const std::vector<Case>& cases, std::uint64_t seed) {
       return by_value(cases, seed, 0.12, 0.3);
     }},
    {"every configuration is off by 2 %",
     [](const std::vector<Case>& cases, std::uint64_t seed) {
       std::mt19937_64 generator(seed);
       Factors factors;
       for (std::size_t i = 0; i < cases.size(); ++i) {
         factors.push_back(std::exp(0.02 * std::normal_distribution<double>()(generator)));
       }
       return factors;
     }},
});

}  // namespace

double Case::compute_share() const {
  return (physics.at(StepPart::products) + physics.at(StepPart::attention) +
          physics.at(StepPart::model_passes)) /
         physics.total();
}

double Case::communication_share() const {
  Seconds sum = 0;
  for (std::size_t part = index_of(StepPart::all_reduce); part < index_of(StepPart::host); ++part) {
    sum += physics.parts[part];
  }
  return sum / physics.total();
}

std::span<const Truth> truths() { return kTruths; }
std::span<const DrawnTruth> drawn_truths() { return kDrawn; }

}  // namespace dstune::bench
