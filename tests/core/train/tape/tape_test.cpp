// The tape beside what torch.autograd and torch.utils.checkpoint do. In front of each test: what a
// tape that fails it has lost.
#include "core/train/tape/tape.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/tape/modules.hpp"
#include "tests/support/spying_device.hpp"

namespace dstune::tape_test {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kColumns = 256;
constexpr Bytes kSize = kColumns * size_of(DType::fp32);

using Events = std::vector<std::string>;

/// No parameter has contents; all that are called train.
class Recorder final : public ModuleHooks {
 public:
  explicit Recorder(Events& events) : events_(&events) {}

  void fetch(std::size_t module) override { events_->push_back(concat("fetch ", module)); }
  void release(std::size_t module) override { events_->push_back(concat("release ", module)); }
  Tensor parameter(std::size_t /*tensor*/) const override { return {}; }
  bool is_trainable(std::size_t /*tensor*/) const override { return true; }
  void gradient_ready(std::size_t tensor, Buffer /*gradient*/) override {
    events_->push_back(concat("gradient ", tensor));
  }

 private:
  Events* events_;
};

/// A rank's step out of operations that say when they run.
class TapeTest : public testing::Test {
 protected:
  Value tensor() { return new_value(device_, DType::fp32, 1, kColumns); }
  Buffer gradient() { return context_.gradient(kColumns); }
  Bytes in_use() { return device_.memory().in_use(); }

  /// What needs a gradient and hands none on.
  Value source(Tape& on) {
    return on.record(tensor(), [](Tape&, const Value&) {});
  }
  /// An operation that saves its operand, and its gradient: a tensor of its own.
  Value saving(Tape& on, const std::string& name, const Value& x) {
    events_.push_back(name);
    Value out = tensor();
    if (!on.records(x.needs_gradient())) return out;
    return on.record(std::move(out), [this, name, node = x.node, saved = on.save(x)](
                                         Tape& back, const Value&) mutable {
      const Value kept = saved.take(back);
      events_.push_back(concat("back ", name));
      back.give(node, tensor());
    });
  }
  /// One that hands the gradient on as it is, to each of its operands.
  Value passing(Tape& on, const std::string& name, const std::vector<Value>& operands) {
    std::vector<std::size_t> nodes;
    for (const Value& operand : operands) nodes.push_back(operand.node);
    if (!on.records(operands.front().needs_gradient())) return tensor();
    return on.record(tensor(), [this, name, nodes](Tape& back, const Value& d) {
      events_.push_back(concat("back ", name));
      for (const std::size_t node : nodes) back.give(node, d);
    });
  }
  /// One that gives the gradient by a parameter.
  Value trained(Tape& on, const std::string& name, const Value& x, std::size_t parameter,
                Memory memory = Memory::own) {
    if (!on.records(true)) return tensor();
    return on.record(tensor(), {parameter},
                     [this, name, node = x.node, parameter, memory](Tape& back, Value d) {
                       events_.push_back(concat("back ", name));
                       back.give(node, std::move(d));
                       back.give(parameter, gradient(), memory);
                     });
  }
  /// One that only calls `body` on the way back.
  template <class Body>
  Value watching(Tape& on, const Value& x, Body body) {
    if (!on.records(x.needs_gradient())) return tensor();
    return on.record(tensor(), [body, node = x.node](Tape& back, Value d) {
      body();
      back.give(node, std::move(d));
    });
  }
  void set_reentrant() {
    context_.checkpointing.unit = ActivationCheckpointing::Unit::layer;
    context_.checkpointing.reentrant = true;
  }

  Events events_;
  std::vector<std::string> sums_;  ///< operations, which are all sums of gradients
  std::vector<Bytes> in_use_at_sums_;
  DryDevice dry_{Bytes{1} << 20U};
  test::SpyingDevice device_{dry_, [this](const Work& work) {
                               sums_.emplace_back(work.operation);
                               in_use_at_sums_.push_back(device_.memory().in_use());
                             }};
  BatchContext context_{MicroBatch{.sequence_length = 1}, device_};
  Recorder hooks_{events_};
};

// Lost: the order. A tape that takes nodes from the front, or runs one as soon as it has a
// gradient.
TEST_F(TapeTest, TakesTheNodeThatWasMadeLastFirst) {
  Tape tape(context_, hooks_);
  const Value x = source(tape);
  const Value a = passing(tape, "a", {x});
  const Value b = passing(tape, "b", {a});
  const Value c = passing(tape, "c", {a});
  const Value d = passing(tape, "d", {c, b});

  tape.backward(d.node, tensor());

  EXPECT_THAT(events_, ElementsAre("back d", "back c", "back b", "back a"));
}

// Lost: `is_reached`. A node that no gradient comes to would run without one.
TEST_F(TapeTest, SkipsWhatNoGradientComesTo) {
  Tape tape(context_, hooks_);
  const Value x = source(tape);
  const Value a = passing(tape, "a", {x});
  passing(tape, "unused", {x});
  trained(tape, "unused with a parameter", x, 7);
  const Value b = passing(tape, "b", {a});

  tape.backward(b.node, tensor());

  EXPECT_THAT(events_, ElementsAre("back b", "back a"));
}

// Lost: `last.reset()` before the gradients are handed out. The sum would be made beside what the
// node saved and beside the gradient that it took.
TEST_F(TapeTest, WhatANodeSavedIsGoneBeforeItsGradientsAreAddedUp) {
  Tape tape(context_, hooks_);
  const Bytes before = in_use();
  Value x = source(tape);
  Value a = tape.record(tensor(), [this, node = x.node, saved = x.detached()](Tape& back, Value) {
    back.give(node, tensor());
  });
  Value b = passing(tape, "b", {a, x});
  for (Value* local : {&x, &a, &b}) local->storage.reset();

  tape.backward(b.node, tensor());

  // Both give x a gradient. At the addition two are there, and nothing else.
  EXPECT_THAT(sums_, ElementsAre("add"));
  EXPECT_THAT(in_use_at_sums_, ElementsAre(before + 2 * kSize));
}

// Lost: either side of the check of `use_count()`. A sum over a gradient that another node has yet
// to read would spoil that; one that is always new would move a peak.
TEST_F(TapeTest, AddsInPlaceOnlyWhatNobodyElseHolds) {
  Tape tape(context_, hooks_);
  const Value x = source(tape);
  const Value held = passing(tape, "holds what x has", {x});
  const Value own = saving(tape, "gives x one of its own", x);
  const Value again = saving(tape, "gives x another", x);
  const Value out = passing(tape, "gives both the same", {x, held, own, again});

  tape.backward(out.node, tensor());

  // Others hold x's first when the next comes; from then on x has a sum of its own.
  EXPECT_THAT(sums_, ElementsAre("add_broadcast", "add", "add"));
}

// Lost: `uses`. A parameter of two nodes would be handed over with the first part of its gradient.
TEST_F(TapeTest, AParametersGradientIsCompleteWhenAllItsNodesHaveGivenTheirs) {
  Tape tape(context_, hooks_);
  const Value a = trained(tape, "a", source(tape), 3);
  const Value b = trained(tape, "b", a, 4);
  const Value c = trained(tape, "c", b, 3);

  tape.backward(c.node, tensor());

  EXPECT_THAT(events_, ElementsAre("back c", "back b", "gradient 4", "back a", "gradient 3"));
  EXPECT_THAT(sums_, ElementsAre("add"));
}

// Lost: the count of a node that does not run. Its parameter would wait for ever.
TEST_F(TapeTest, ASkippedNodeIsNotWaitedFor) {
  Tape tape(context_, hooks_);
  const Value x = source(tape);
  const Value a = trained(tape, "a", x, 3);
  trained(tape, "unused", x, 3);

  tape.backward(a.node, tensor());

  EXPECT_THAT(events_, ElementsAre("back a", "gradient 3"));
}

// Lost: Memory::view, or that a sum with one is the leaf's own.
TEST_F(TapeTest, TheFirstSumWithAViewIsAThirdTensor) {
  const auto peak_of = [this](Memory memory) {
    Tape tape(context_, hooks_);
    Value x = source(tape);
    for (int node = 0; node < 3; ++node) x = trained(tape, "shared", x, 3, memory);
    in_use_at_sums_.clear();
    device_.memory().reset_peak();
    const Bytes others = 2 * kSize;  // the gradient on its way, and x's tensor that is held here
    tape.backward(x.node, tensor());
    return device_.memory().peak().allocated - others;
  };

  const Bytes own = peak_of(Memory::own);
  const Bytes view = peak_of(Memory::view);
  EXPECT_EQ(view, own + kSize);
  // The third part is added in place: with it no tensor is there that was not at the own sum's.
  EXPECT_THAT(in_use_at_sums_, ElementsAre(in_use_at_sums_.back() + kSize, in_use_at_sums_.back()));
}

// Lost: a node of the two hooks, or its place.
TEST_F(TapeTest, HooksAreAroundAModuleAndItsBackward) {
  Tape tape(context_, hooks_);
  const Value y = run_module(tape, 1, source(tape), [&](const Value& x) {
    return run_module(tape, 2, x, [&](const Value& in) { return saving(tape, "body", in); });
  });
  tape.backward(y.node, tensor());

  EXPECT_THAT(events_, ElementsAre("fetch 1", "fetch 2", "body", "release 2", "release 1",
                                   "fetch 1", "fetch 2", "back body", "release 2", "release 1"));
}

// Lost: Passed::by_keyword. DeepSpeed's hook behind the backward would run where it misses.
TEST_F(TapeTest, NoHookIsBehindTheBackwardOfAModuleThatGetsItsInputByKeyword) {
  Tape tape(context_, hooks_);
  const Value y = run_module(
      tape, 1, source(tape), [&](const Value& x) { return saving(tape, "body", x); },
      Passed::by_keyword);
  tape.backward(y.node, tensor());

  EXPECT_THAT(events_, ElementsAre("fetch 1", "body", "release 1", "fetch 1", "back body"));
}

// Lost: the check that something needs a gradient: autograd never comes to such a module.
TEST_F(TapeTest, AModuleWithoutAGradientHasNoHooksInBackward) {
  Tape tape(context_, hooks_);
  const Value y =
      run_module(tape, 1, tensor(), [&](const Value& x) { return saving(tape, "body", x); });

  EXPECT_FALSE(y.needs_gradient());
  EXPECT_THAT(events_, ElementsAre("fetch 1", "body", "release 1"));
}

// Lost: Mode::forgets, or that it ends.
TEST_F(TapeTest, WithoutGradientsNothingIsRecordedOrKept) {
  Tape tape(context_, hooks_);
  const Value x = source(tape);
  const Bytes before = in_use();

  const Value y = tape.without_gradients([&] {
    EXPECT_FALSE(tape.records(true));
    return saving(tape, "b", saving(tape, "a", x));
  });

  EXPECT_FALSE(y.needs_gradient());
  EXPECT_EQ(in_use(), before + kSize) << "y alone";
  EXPECT_TRUE(tape.records(true));
}

/// Two operations, the second of which saves what the first made, and a third that saves nothing.
class TapeCheckpoint : public TapeTest {
 protected:
  Value run(Tape& on, const Value& x) {
    return checkpoint(on, x, [this](Tape& in, const Value& rows) {
      const Value second = saving(in, "second", saving(in, "first", rows));
      events_.emplace_back("third");
      return passing(in, "third", {second});
    });
  }
};

// Lost: the frame. What is saved within would be kept.
TEST_F(TapeCheckpoint, KeepsItsInputAlone) {
  for (const bool reentrant : {false, true}) {
    if (reentrant) set_reentrant();
    Tape tape(context_, hooks_);
    const Bytes before = in_use();

    const Value y = run(tape, source(tape));

    EXPECT_EQ(in_use(), before + 2 * kSize) << "its input, and y which is held here";
  }
}

// Lost: the early stop (what follows the last save would run again), or that only what first reads
// has it run again (it would run ahead of the nodes behind).
TEST_F(TapeCheckpoint, RunsAgainWhenItIsReadAndEndsWithTheLastSave) {
  Tape tape(context_, hooks_);
  const Value y = run(tape, source(tape));
  events_.clear();

  tape.backward(y.node, tensor());

  EXPECT_THAT(events_, ElementsAre("back third", "first", "second", "back second", "back first"));
}

// Lost: a place that says that its node is gone. What runs again would be put into it.
TEST_F(TapeCheckpoint, MakesNothingAgainForNodesThatAreGone) {
  Tape tape(context_, hooks_);
  const Bytes before = in_use();
  Value y = checkpoint(tape, source(tape), [this](Tape& in, const Value& rows) {
    const Value used = saving(in, "used", rows);
    saving(in, "unused", rows);
    return used;
  });
  events_.clear();
  y.storage.reset();

  tape.backward(y.node, tensor());

  EXPECT_THAT(events_, ElementsAre("used", "unused", "back used"));
  EXPECT_EQ(in_use(), before);
}

// Lost: who holds the input. It lives as long as a node that has saved within, not until the end of
// backward, and not for the moment of running again only.
TEST_F(TapeCheckpoint, ItsInputLivesAsLongAsItsNodes) {
  Tape tape(context_, hooks_);
  const Bytes before = in_use();
  Bytes within = 0;
  Bytes behind = 0;
  Value y;
  {
    const Value x = watching(tape, source(tape), [&] { behind = in_use(); });
    y = checkpoint(tape, x, [&](Tape& in, const Value& rows) {
      const Value first = saving(in, "first", rows);
      return saving(in, "second", watching(in, first, [&] { within = in_use(); }));
    });
  }
  y.storage.reset();
  tape.backward(y.node, tensor());

  // Between them: the gradient, and the input, which the first node's place is filled with.
  EXPECT_EQ(within, before + 2 * kSize);
  EXPECT_EQ(behind, before + kSize) << "the gradient alone";
}

// Lost: a reentrant checkpoint's own backward: all of it runs again, and nothing of it before.
TEST_F(TapeCheckpoint, AReentrantOneRunsAgainAsAWhole) {
  set_reentrant();
  Tape tape(context_, hooks_);
  const Value y = run(tape, watching(tape, source(tape), [&] { events_.emplace_back("below"); }));
  events_.clear();

  tape.backward(y.node, tensor());

  EXPECT_THAT(events_, ElementsAre("first", "second", "third", "back third", "back second",
                                   "back first", "below"));
}

// Lost: what torch's CheckpointFunction holds until its backward is over: its input, its output,
// made again, and the gradient by that.
TEST_F(TapeCheckpoint, AReentrantOneHoldsWhatWentInAndCameOut) {
  set_reentrant();
  Tape tape(context_, hooks_);
  const Bytes before = in_use();
  Bytes at_first = 0;
  Value y = checkpoint(tape, source(tape), [&](Tape& in, const Value& rows) {
    return saving(in, "second", watching(in, rows, [&] { at_first = in_use(); }));
  });
  y.storage.reset();
  tape.backward(y.node, tensor());

  EXPECT_EQ(at_first, before + 4 * kSize) << "x, y, its gradient, and that by what second got";
}

// Lost: the first run without gradients (a second node of the parameter), or the hand-over within:
// a parameter's gradient comes while the checkpoint's backward runs.
TEST_F(TapeCheckpoint, AReentrantOneRecordsWhenItRunsAgainAndHandsGradientsOverByItself) {
  set_reentrant();
  Tape tape(context_, hooks_);
  std::vector<bool> records;
  const Value x = watching(tape, source(tape), [&] { events_.emplace_back("below"); });
  const Value y = checkpoint(tape, x, [&](Tape& in, const Value& rows) {
    records.push_back(in.records(true));
    return trained(in, "a", rows, 3);
  });

  tape.backward(y.node, tensor());

  EXPECT_THAT(records, ElementsAre(false, true));
  EXPECT_THAT(events_, ElementsAre("back a", "gradient 3", "below"));
}

}  // namespace
}  // namespace dstune::tape_test
