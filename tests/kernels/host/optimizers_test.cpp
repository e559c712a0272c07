#include "core/device/operations/optimizers.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/kernels/host/host_case.hpp"

namespace dstune::host::optimizers_test {

namespace {

using test::kCounts;
using test::numbers;
using test::tensor_of;

/// Half the distance of neighbours, relative to numbers just above a power of two.
constexpr double kRounding = 0x1p-24;

/// An optimizer's tensors; Adagrad's sum of squares is `squares`, too.
struct State {
  std::vector<float> gradient;
  std::vector<float> parameter;
  std::vector<float> momentum;
  std::vector<float> squares;

  explicit State(std::int64_t count)
      : gradient(numbers(count, -1, 1, 1)),
        parameter(numbers(count, -2, 2, 2)),
        momentum(numbers(count, -0.5F, 0.5F, 3)),
        squares(numbers(count, 0.01F, 1, 4)) {}

  bool operator==(const State&) const = default;
};

Adam adam_of(const AdamStep& step, State& state) {
  return {.step = step,
          .gradient = tensor_of(state.gradient),
          .parameter = tensor_of(state.parameter),
          .exp_avg = tensor_of(state.momentum),
          .exp_avg_sq = tensor_of(state.squares)};
}
Lion lion_of(const LionStep& step, State& state) {
  return {.step = step,
          .gradient = tensor_of(state.gradient),
          .parameter = tensor_of(state.parameter),
          .exp_avg = tensor_of(state.momentum)};
}
Adagrad adagrad_of(const AdagradStep& step, State& state) {
  return {.step = step,
          .gradient = tensor_of(state.gradient),
          .parameter = tensor_of(state.parameter),
          .sum = tensor_of(state.squares),
          .numerator = {},
          .root = {}};
}

/// A number, and what it would be off by if every term of it were rounded once.
struct Expected {
  double value;
  double rounding;
};

struct ExpectedElement {
  Expected parameter;
  Expected momentum;
  Expected squares;
  bool is_certain = true;  ///< false: it hangs on the sign of a number that rounding may change
};

struct Element {
  double g;
  double p;
  double m;
  double v;
};

ExpectedElement by_definition(const AdamStep& step, const Element& old) {
  const double g = step.adam_w ? old.g : old.g + step.weight_decay * old.p;
  const double g_terms =
      step.adam_w ? std::abs(old.g) : std::abs(old.g) + step.weight_decay * std::abs(old.p);
  const double m = step.beta1 * old.m + (1 - step.beta1) * g;
  const double m_terms = step.beta1 * std::abs(old.m) + (1 - step.beta1) * g_terms;
  const double v = step.beta2 * old.v + (1 - step.beta2) * g * g;
  const double v_terms = step.beta2 * old.v + (1 - step.beta2) * g_terms * g_terms;
  const auto t = static_cast<double>(step.step);
  const double bias1 = step.bias_correction ? 1 - std::pow(step.beta1, t) : 1;
  const double bias2 = step.bias_correction ? 1 - std::pow(step.beta2, t) : 1;
  const double decayed = step.adam_w ? old.p * (1 - step.lr * step.weight_decay) : old.p;
  const double rate = step.lr / bias1 / (std::sqrt(v / bias2) + step.epsilon);
  return {.parameter = {decayed - rate * m, std::abs(decayed) + rate * m_terms * (1 + v_terms / v)},
          .momentum = {m, m_terms},
          .squares = {v, v_terms}};
}

ExpectedElement by_definition(const LionStep& step, const Element& old) {
  const double direction = step.beta1 * old.m + (1 - step.beta1) * old.g;
  const double terms = step.beta1 * std::abs(old.m) + (1 - step.beta1) * std::abs(old.g);
  const double p =
      old.p - step.lr * ((std::signbit(direction) ? -1 : 1) + step.weight_decay * old.p);
  return {.parameter = {p, std::abs(old.p) + step.lr},
          .momentum = {step.beta2 * old.m + (1 - step.beta2) * old.g,
                       step.beta2 * std::abs(old.m) + (1 - step.beta2) * std::abs(old.g)},
          .squares = {old.v, 0},
          .is_certain = std::abs(direction) > 4 * kRounding * terms};
}

ExpectedElement by_definition(const AdagradStep& step, const Element& old) {
  const double g = old.g + step.weight_decay * old.p;
  const double terms = std::abs(old.g) + step.weight_decay * std::abs(old.p);
  const double sum = old.v + g * g;
  const double rate = step.lr / (std::sqrt(sum) + step.epsilon);
  return {.parameter = {old.p - rate * g, std::abs(old.p) + rate * terms},
          .momentum = {old.m, 0},
          .squares = {sum, old.v + terms * terms}};
}

/// How many of the expected roundings the worst of `actual` is off by.
class WorstError {
 public:
  void see(double actual, const Expected& expected) {
    const double error = std::abs(actual - expected.value);
    if (!(error <= 0))
      worst_ =
          std::fmax(worst_, std::isnan(error) ? HUGE_VAL : error / (kRounding * expected.rounding));
  }
  double roundings() const { return worst_; }

 private:
  double worst_ = 0;
};

/// A term is a product or two of rounded factors, and the sums are rounded, too.
constexpr double kMostRoundings = 8;

template <class Step>
void expect_definition(const Step& step, const State& before, const State& after) {
  WorstError parameter;
  WorstError momentum;
  WorstError squares;
  std::size_t uncertain = 0;
  const auto at = [](const std::vector<float>& values, std::size_t i) {
    return static_cast<double>(values[i]);
  };
  for (std::size_t i = 0; i < before.parameter.size(); ++i) {
    const ExpectedElement expected =
        by_definition(step, Element{at(before.gradient, i), at(before.parameter, i),
                                    at(before.momentum, i), at(before.squares, i)});
    if (expected.is_certain) {
      parameter.see(at(after.parameter, i), expected.parameter);
    } else {
      ++uncertain;
    }
    momentum.see(at(after.momentum, i), expected.momentum);
    squares.see(at(after.squares, i), expected.squares);
  }
  EXPECT_LE(parameter.roundings(), kMostRoundings);
  EXPECT_LE(momentum.roundings(), kMostRoundings);
  EXPECT_LE(squares.roundings(), kMostRoundings);
  EXPECT_LE(uncertain, before.parameter.size() / 10000);
  EXPECT_EQ(after.gradient, before.gradient);
}

/// The pass of operation_of(step, state) is held to the definition in double, and every team to
/// what the first has made with the same instructions.
template <class Step, class OperationOf>
void expect_passes(const Step& step, OperationOf operation_of,
                   std::span<const std::int64_t> counts = kCounts) {
  for (const std::int64_t count : counts) {
    SCOPED_TRACE(testing::Message() << count << " elements");
    const State before(count);
    std::map<InstructionSet, State> first;
    test::for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
      State state = before;

      compute(threads, operation_of(step, state), options);

      const auto [found, is_new] = first.try_emplace(options.instructions, state);
      if (is_new) {
        expect_definition(step, before, state);
      } else {
        EXPECT_TRUE(state == found->second);
      }
    });
  }
}

TEST(HostOptimizersTest, AdamAgreesWithItsDefinitionForEveryTeamAndInstructionSet) {
  expect_passes(AdamStep{0.01, 0.9, 0.95, 1e-6, 0.1, true, true, 3}, adam_of);
}

TEST(HostOptimizersTest, AdamDecaysEitherWayAndCorrectsItsBiasIfItShould) {
  constexpr std::int64_t kFewCounts[] = {17, 1003};
  for (const bool adam_w : {true, false}) {
    for (const bool bias_correction : {true, false}) {
      SCOPED_TRACE(testing::Message() << adam_w << " " << bias_correction);
      expect_passes(AdamStep{0.01, 0.9, 0.95, 1e-6, 0.1, adam_w, bias_correction, 3}, adam_of,
                    kFewCounts);
    }
  }
}

TEST(HostOptimizersTest, LionAgreesWithItsDefinitionForEveryTeamAndInstructionSet) {
  expect_passes(LionStep{0.01, 0.9, 0.99, 0.1}, lion_of);
}

TEST(HostOptimizersTest, AdagradNeedsNoScratchAndAgreesWithItsDefinition) {
  for (const double weight_decay : {0.0, 0.1}) {
    expect_passes(AdagradStep{0.01, 1e-8, weight_decay}, adagrad_of);
  }
}

// DeepSpeed's op for the CPU takes the sign of the zero; its kernel for GPUs moves it the other
// way.
TEST(HostOptimizersTest, LionMovesAParameterThatHasNoGradient) {
  test::for_teams_and_instructions([](Threads& threads, const PassOptions& options) {
    State state(100);
    state.gradient.assign(100, 0);
    state.momentum.assign(100, 0);
    state.parameter.assign(100, 2);

    compute(threads, lion_of({.lr = 0.5}, state), options);

    EXPECT_EQ(state.parameter, std::vector<float>(100, 1.5F));
  });
}

/// The largest difference of two results, in distances between neighbours of numbers like `scale`.
double difference(const std::vector<float>& a, const std::vector<float>& b, double scale) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::fmax(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest / (2 * kRounding * scale);
}

// The numbers of State are at most 2, and of about that size.
TEST(HostOptimizersTest, ResultsAreThoseOfTheCpuBackendToTheRoundingsOfAMultiplyAdd) {
  constexpr std::int64_t kCount = 100003;
  cpu::CpuDevice device(Bytes{1} << 20U);
  State by_device(kCount);
  std::vector<float> numerator(kCount);
  std::vector<float> root(kCount);
  const AdamStep adam{.lr = 0.01, .weight_decay = 0.1, .step = 2};
  const LionStep lion{.lr = 0.01, .weight_decay = 0.1};
  const AdagradStep adagrad{.lr = 0.01, .weight_decay = 0.1};
  device.run(adam_of(adam, by_device));
  device.run(lion_of(lion, by_device));
  Adagrad with_scratch = adagrad_of(adagrad, by_device);
  with_scratch.numerator = tensor_of(numerator);
  with_scratch.root = tensor_of(root);
  device.run(with_scratch);

  test::for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
    State state(kCount);
    compute(threads, adam_of(adam, state), options);
    compute(threads, lion_of(lion, state), options);
    compute(threads, adagrad_of(adagrad, state), options);

    EXPECT_LE(difference(state.parameter, by_device.parameter, 2), 2);
    EXPECT_LE(difference(state.momentum, by_device.momentum, 1), 2);
    EXPECT_LE(difference(state.squares, by_device.squares, 2), 2);
  });
}

TEST(HostOptimizersTest, ALongPassTicksOnTheThreadThatCalls) {
  State state(1000003);  // three chunks of 8 MiB of traffic, and a rest
  Threads alone(1);
  Threads two(2);
  int ticks = 0;
  const PassOptions options{.tick = [&, caller = std::this_thread::get_id()] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++ticks;
  }};

  compute(alone, adam_of({}, state), options);
  EXPECT_EQ(ticks, 4);

  ticks = 0;
  compute(two, adam_of({}, state), options);
  EXPECT_GE(ticks, 2);
}

TEST(HostOptimizersTest, WhatATickThrowsEndsThePassAndTheTeamStays) {
  for (const int team : {1, 3}) {
    State state(1000003);
    const State before = state;
    Threads threads(team);
    int ticks = 0;
    const PassOptions options{.tick = [&] {
      if (++ticks == 2) throw std::runtime_error("aborted");
    }};
    const std::size_t in_second_chunk = 333000;  // of the caller, if the team is one of three, too

    EXPECT_THROW(compute(threads, adam_of({}, state), options), std::runtime_error);

    EXPECT_NE(state.parameter[0], before.parameter[0]);
    EXPECT_EQ(state.parameter[in_second_chunk], before.parameter[in_second_chunk]);
    compute(threads, adam_of({}, state));
    EXPECT_NE(state.parameter[in_second_chunk], before.parameter[in_second_chunk]);
  }
}

}  // namespace

}  // namespace dstune::host::optimizers_test
