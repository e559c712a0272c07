// Calls, elements and bytes of one optimizer step, against zero-step.md 3. The packing is simulated
// here once more, element by element.
#include <cstdint>
#include <iostream>
#include <numeric>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "core/train/step_config.hpp"
#include "core/train/zero/replicated_engine.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

using test::TinyExperiment;
using Order = std::vector<std::size_t>;

CollectiveCount& count_of(CollectiveCounts& counts, CollectiveKind kind) {
  return counts[static_cast<std::size_t>(kind)];
}

void add(CollectiveCounts& counts, CollectiveKind kind, std::int64_t elements, Bytes each) {
  CollectiveCount& count = count_of(counts, kind);
  ++count.calls;
  count.elements += static_cast<std::uint64_t>(elements);
  count.bytes += static_cast<Bytes>(elements) * each;
}

/// The places of a layer's tensors in the order of backward: mlp.c_proj, mlp.c_fc, ln_2,
/// attn.c_proj, attn.c_attn, ln_1; biases of linear layers before their weights.
constexpr std::size_t kLayerBackward[] = {11, 10, 9, 8, 6, 7, 5, 4, 3, 2, 0, 1};

class Simulation {
 public:
  explicit Simulation(const TinyExperiment& tiny)
      : config_(make_step_config(tiny.make().ds_config)),
        layers_(static_cast<std::size_t>(tiny.model.num_layers)),
        ranks_(tiny.ranks) {
    for (const auto& tensor : make_model_parameters(tiny.model).tensors) {
      numels_.push_back(tensor.numel());
      decays_.push_back(tensor.weight_decay);
    }
  }

  CollectiveCounts counts() {
    if (config_.stage == 0) count_stage_0();
    if (config_.stage == 1 || config_.stage == 2) count_stages_1_and_2();
    if (config_.stage == 3) count_stage_3();
    return counts_;
  }

 private:
  std::int64_t padded(std::size_t tensor) const {
    return (numels_[tensor] + ranks_ - 1) / ranks_ * ranks_;
  }

  void call(CollectiveKind kind, std::int64_t elements) {
    add(counts_, kind, elements, size_of(config_.dtype));
  }

  Order backward_order() const {
    Order order = {2 + 12 * layers_, 3 + 12 * layers_};
    for (std::size_t layer = layers_; layer-- > 0;) {
      for (const std::size_t place : kLayerBackward) order.push_back(2 + 12 * layer + place);
    }
    order.insert(order.end(), {1, 0});
    return order;
  }

  std::vector<Order> groups() const {
    std::vector<Order> groups(config_.optimizer.client ? 2 : 1);
    for (std::size_t i = 0; i < numels_.size(); ++i) {
      groups[config_.optimizer.client && !decays_[i] ? 1 : 0].push_back(i);
    }
    return groups;
  }

  std::vector<Order> buckets(const Order& order) const {
    std::vector<Order> flushed;
    Order bucket;
    std::int64_t fill = 0;
    for (const std::size_t tensor : order) {
      if (!bucket.empty() && fill + numels_[tensor] > config_.reduce_bucket_size) {
        flushed.push_back(bucket);
        bucket.clear();
        fill = 0;
      }
      bucket.push_back(tensor);
      fill += numels_[tensor];
    }
    flushed.push_back(bucket);
    return flushed;
  }

  void count_stage_0() {
    call(CollectiveKind::all_reduce, std::accumulate(numels_.begin(), numels_.end(), 0L));
    if (config_.dtype == DType::fp32 && config_.gradient_clipping > 0) {
      add(counts_, CollectiveKind::all_reduce, 1, 4);
    }
  }

  void count_stages_1_and_2() {
    lay_out();
    const bool late = config_.stage == 1 && !config_.overlap_comm;
    Order order = late ? Order{} : backward_order();
    if (late) {
      for (const Order& group : groups()) order.insert(order.end(), group.begin(), group.end());
    }
    const std::int64_t windows = config_.stage == 1 ? 1 : config_.accumulation_steps;
    for (std::int64_t window = 0; window < windows; ++window) {
      for (const Order& bucket : buckets(order)) average(bucket);
    }
    if (config_.dtype != DType::fp32) add(counts_, CollectiveKind::all_reduce, 1, 1);
    for (const std::int64_t length : lengths_) {
      add(counts_, CollectiveKind::all_reduce, 1, 4);
      if (ranks_ > 1) call(CollectiveKind::all_gather, length);
    }
  }

  void lay_out() {
    owners_.resize(numels_.size());
    for (const Order& group : groups()) {
      std::int64_t length = 0;
      for (const std::size_t tensor : group) length += numels_[tensor];
      while (length % (2 * ranks_) != 0) ++length;
      lengths_.push_back(length);
      std::int64_t element = 0;
      for (const std::size_t tensor : group) {
        for (std::int64_t i = 0; i < numels_[tensor]; ++i, ++element) {
          owners_[tensor].push_back(element / (length / ranks_));
        }
      }
    }
  }

  void average(const Order& bucket) {
    std::vector<std::int64_t> owners;
    for (const std::size_t tensor : bucket) {
      owners.insert(owners.end(), owners_[tensor].begin(), owners_[tensor].end());
    }
    std::int64_t fill = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      ++fill;
      const bool is_last = i + 1 == owners.size();
      const bool ends_slice = is_last || owners[i + 1] != owners[i];
      const bool is_full =
          config_.reduce_scatter && ends_slice && fill > config_.reduce_bucket_size;
      if (!is_full && !is_last) continue;
      call(CollectiveKind::all_reduce, fill);
      fill = 0;
    }
  }

  void count_stage_3() {
    for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
      if (ranks_ > 1) gather_all_modules_twice();
      for (const Order& bucket : buckets(backward_order())) reduce(bucket);
    }
    if (config_.dtype == DType::fp16) add(counts_, CollectiveKind::all_reduce, 1, 1);
    for (const Order& group : groups()) {
      std::int64_t fill = 0;
      for (const std::size_t tensor : group) {
        if (fill == 0) add(counts_, CollectiveKind::all_reduce, 1, 4);  // a sub-group's norm
        fill += padded(tensor) / ranks_;
        if (fill >= config_.sub_group_size) fill = 0;
      }
    }
  }

  // Forward and backward: the embeddings, the head, which is tied to the first of them, and every
  // pair of weight and bias.
  void gather_all_modules_twice() {
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::size_t alone : {0U, 1U, 0U}) {
        call(CollectiveKind::all_gather, padded(alone));
      }
      for (std::size_t weight = 2; weight < numels_.size(); weight += 2) {
        call(CollectiveKind::all_gather, padded(weight) + padded(weight + 1));
      }
    }
  }

  void reduce(const Order& bucket) {
    std::int64_t fill = 0;
    std::int64_t with_padding = 0;
    for (const std::size_t tensor : bucket) {
      fill += numels_[tensor];
      with_padding += padded(tensor);
    }
    const bool whole = !config_.reduce_scatter && fill <= config_.reduce_bucket_size;
    call(whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
         whole ? fill : with_padding);
  }

  StepConfig config_;
  std::size_t layers_;
  std::int64_t ranks_;
  std::vector<std::int64_t> numels_;
  std::vector<bool> decays_;
  std::vector<std::int64_t> lengths_;              // padded, by group
  std::vector<std::vector<std::int64_t>> owners_;  // by tensor and element
  CollectiveCounts counts_{};
};

CollectiveCounts counts_of(const TinyExperiment& tiny, int rank) {
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome).collectives;
}

class Communication : public testing::TestWithParam<int> {
 protected:
  /// One experiment for each of everything that communication depends on.
  static std::vector<TinyExperiment> experiments(int stage, std::int64_t bucket) {
    std::vector<TinyExperiment> all;
    for (const int ranks : {1, 2, 3, 4, 8}) {
      for (const int accumulation : {1, 3}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          for (const bool client : {false, true}) {
            for (const bool scatter : {false, true}) {
              for (const bool overlap : {false, true}) {
                const json::object zero = {{"reduce_bucket_size", bucket},
                                           {"reduce_scatter", scatter},
                                           {"overlap_comm", overlap},
                                           {"sub_group_size", bucket}};
                all.push_back({stage, ranks, 1, accumulation, dtype, client, zero});
              }
            }
          }
        }
      }
    }
    return all;
  }
};

// The tiny model has 910 parameters; its largest tensor 174, its smallest 6.
TEST_P(Communication, OfOneStepIsTheSimulations) {
  int checked = 0;
  for (const std::int64_t bucket : {500'000'000, 911, 910, 200, 174, 108, 40, 5}) {
    for (const TinyExperiment& tiny : experiments(GetParam(), bucket)) {
      const int rank = checked % tiny.ranks;

      const CollectiveCounts counts = counts_of(tiny, rank);

      CollectiveCounts expected = Simulation(tiny).counts();
      for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
        EXPECT_EQ(counts[kind].calls, expected[kind].calls) << tiny.name() << ", kind " << kind;
        EXPECT_EQ(counts[kind].elements, expected[kind].elements) << tiny.name();
        EXPECT_EQ(counts[kind].bytes, expected[kind].bytes) << tiny.name();
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 100);
  std::cout << checked << " experiments checked\n";
}

INSTANTIATE_TEST_SUITE_P(Stages, Communication, testing::Values(0, 1, 2, 3));

// zero-step.md 3.2 and 3.3, volumes, in bf16 with everything divisible by four ranks.
TEST(CommunicationVolume, IsTheTablesPerStage) {
  const auto wire = [](int stage, std::int64_t accumulation) {
    TinyExperiment tiny{stage, 4, 1, accumulation, DType::bf16, false, {}};
    tiny.model.vocab_size = 32;
    tiny.model.max_positions = 8;
    tiny.model.hidden_size = 8;
    tiny.model.inner_size = 32;
    const auto counts = counts_of(tiny, 0);
    const auto parameters = make_model_parameters(tiny.model);
    double bytes = 0;
    for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      bytes += wire_bytes(static_cast<CollectiveKind>(kind), counts[kind].bytes, 4);
    }
    const std::uint64_t scalars = stage == 0 ? 0 : stage == 3 ? 4 : 5;
    bytes -= wire_bytes(CollectiveKind::all_reduce, scalars, 4);
    // In parts of (N - 1) / N e P; stage 3 gathers the tied embedding twice per pass.
    const double tied = 2.0 * 2 * static_cast<double>(parameters.tensors[0].numel());
    if (stage == 3) bytes -= static_cast<double>(accumulation) * 0.75 * tied;
    return bytes / (0.75 * 2 * static_cast<double>(parameters.total()));
  };

  EXPECT_DOUBLE_EQ(wire(0, 1), 2);
  EXPECT_DOUBLE_EQ(wire(0, 3), 2);
  EXPECT_DOUBLE_EQ(wire(1, 3), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(2, 1), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(2, 3), 3 * 2 + 1);
  EXPECT_DOUBLE_EQ(wire(3, 1), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(3, 3), 3 * (2 + 1));
}

// zero-step.md 3.2: HF's "auto" is K = h^2, then every weight of a block is a call of its own and
// small tensors go together between them.
TEST(CommunicationCalls, WithBucketsOfHiddenSizeSquaredAreOnePerWeight) {
  TinyExperiment tiny{2, 1, 1, 1, DType::fp32, false, {{"reduce_bucket_size", 64}}};
  tiny.model.hidden_size = 8;
  tiny.model.inner_size = 32;
  tiny.model.vocab_size = 50;
  tiny.model.max_positions = 16;
  constexpr std::uint64_t kPerLayer = 4 + 4;    // weights, and groups of small ones before them
  constexpr std::uint64_t kAround = 1 + 1 + 1;  // first layer's ln_1, wpe, wte
  constexpr std::uint64_t kNorm = 1;

  CollectiveCounts counts = counts_of(tiny, 0);

  EXPECT_EQ(count_of(counts, CollectiveKind::all_reduce).calls, 2 * kPerLayer + kAround + kNorm);
}

TEST(CommunicationCalls, WithoutClippingStageZeroHasNoNorm) {
  Experiment experiment = TinyExperiment{.stage = 0, .ranks = 2}.make();
  experiment.ds_config["gradient_clipping"] = 0.0;

  auto counts = std::get<Measured>(dry_run(experiment, 0).outcome).collectives;

  EXPECT_EQ(count_of(counts, CollectiveKind::all_reduce).calls, 1U);
}

TEST(PackReplicated, ClosesABucketAfterTheTensorThatExceedsTheLimit) {
  using Ends = std::vector<std::size_t>;

  EXPECT_EQ(pack_replicated({4, 4, 4}, 100), (Ends{3}));
  EXPECT_EQ(pack_replicated({4, 4, 4}, 8), (Ends{3}));  // reached is not exceeded
  EXPECT_EQ(pack_replicated({4, 5, 4}, 8), (Ends{2, 3}));
  EXPECT_EQ(pack_replicated({9, 1, 9, 1}, 8), (Ends{1, 3, 4}));
  EXPECT_EQ(pack_replicated({4, 4, 1}, 8), (Ends{3}));
  EXPECT_EQ(pack_replicated({}, 8), Ends{});
}

}  // namespace
}  // namespace dstune
