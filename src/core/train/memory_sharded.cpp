#include "core/train/memory_sharded.hpp"

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/train/gradient_arrival.hpp"
#include "core/train/hook_trace.hpp"
#include "core/train/quantization_groups.hpp"
#include "core/train/zero/leaf_modules.hpp"
#include "core/train/zero/make_parameter_coordinator.hpp"
#include "core/train/zero/parameter_groups.hpp"
#include "core/train/zero/shard_layout.hpp"

namespace dstune {
namespace {

using Tensors = std::vector<std::size_t>;

Bytes times(std::int64_t elements, Bytes each) { return static_cast<Bytes>(elements) * each; }

/// One category.
class Level {
 public:
  void add(Bytes bytes) { touch(now_ += bytes); }
  void remove(Bytes bytes) { now_ -= bytes; }
  /// `more` for a moment.
  void with(Bytes more) { touch(now_ + more); }
  Bytes now() const { return now_; }
  Bytes peak() const { return peak_; }

 private:
  void touch(Bytes bytes) { peak_ = std::max(peak_, bytes); }

  Bytes now_ = 0;
  Bytes peak_ = 0;
};

/// What all parts of the walk share.
struct Walked {
  const StepConfig& config;
  const ModelParameters& parameters;
  ShardLayout layout;
  std::int64_t ranks;
  int rank;
  Level full;  ///< parameters beside the shards
  Level gradients;
  Level temporaries;

  Bytes e() const { return size_of(config.dtype); }
  std::int64_t padded(std::size_t tensor) const { return ranks * layout.shard(tensor); }
};

/// The bytes of GatheredParameters.
class GatherWalk {
 public:
  explicit GatherWalk(Walked& walked) : walked_(walked) {}

  void gather(const Tensors& tensors) {
    if (tensors.empty() || walked_.ranks == 1) return;
    const StepConfig& config = walked_.config;
    if (config.quantized_weights) {
      gather_quantized(tensors);
    } else if (tensors.size() == 1 || config.allgather_sequential) {
      for (const std::size_t tensor : tensors) gather_alone(tensor);
    } else {
      gather_together(tensors, !config.use_all_reduce_for_fetch_params);
    }
  }

  void gather_persistent(const Tensors& tensors) {
    if (walked_.ranks == 1) return;
    if (tensors.size() == 1) {
      gather_together(tensors, true);
      await(tensors);
    } else {
      for (const std::size_t tensor : tensors) gather_alone(tensor);
    }
  }

  void await(const Tensors& tensors) {
    for (const std::size_t tensor : tensors) {
      const auto found = packed_.find(tensor);
      if (found == packed_.end()) continue;
      const auto message = found->second;
      packed_.erase(found);
      if (!message->is_unpacked) unpack(*message);
      if (--message->left > 0) continue;
      walked_.temporaries.remove(message->bytes);
      messages_.erase(message);
    }
  }

  void release(const Tensors& tensors) {
    if (walked_.ranks == 1) return;
    for (const std::size_t tensor : tensors) {
      const auto shared = shared_.find(tensor);
      if (shared != shared_.end()) {
        if (--shared->second->left == 0) {
          walked_.full.remove(shared->second->bytes);
          messages_.erase(shared->second);
        }
        shared_.erase(shared);
      } else {
        walked_.full.remove(stored_[tensor]);
        stored_.erase(tensor);
      }
    }
  }

 private:
  struct Message {
    Tensors tensors;
    Bytes bytes = 0;
    std::size_t left = 0;
    bool is_unpacked = false;
    std::int64_t quantized = 0;  // elements of all ranks, if it travels as int8
  };

  void gather_alone(std::size_t tensor) {
    stored_[tensor] = times(walked_.padded(tensor), walked_.e());
    walked_.full.add(stored_[tensor]);
  }

  void gather_together(const Tensors& tensors, bool pack) {
    const auto message = messages_.insert(messages_.end(), {tensors, 0, tensors.size(), false, 0});
    for (const std::size_t tensor : tensors) {
      message->bytes += times(walked_.padded(tensor), walked_.e());
      (pack ? packed_ : shared_)[tensor] = message;
    }
    (pack ? walked_.temporaries : walked_.full).add(message->bytes);
  }

  // Launch: the shards together, their fp16 copy, own values and steps; then everybody's.
  void gather_quantized(const Tensors& tensors) {
    std::int64_t own = 0;
    for (const std::size_t tensor : tensors) own += walked_.layout.shard(tensor);
    const Bytes packed = times(own, 1) + times(weight_groups(own).value_or(0), 4);
    const Bytes sent = times(walked_.ranks, packed);
    const auto message = messages_.insert(
        messages_.end(), {tensors, sent, tensors.size(), false, walked_.ranks * own});
    for (const std::size_t tensor : tensors) packed_[tensor] = message;
    const Bytes together = tensors.size() > 1 ? times(own, walked_.e()) : 0;
    walked_.temporaries.with(together + half(own) + packed + sent);
    walked_.temporaries.add(sent);
  }

  /// Of the fp16 that the kernels want.
  Bytes half(std::int64_t elements) const {
    return walked_.config.dtype == DType::fp16 ? 0 : times(elements, 2);
  }

  void dequantize(Message& message) {
    const Bytes bytes = times(message.quantized, walked_.e());
    const bool is_packed = message.tensors.size() > 1;
    walked_.temporaries.with((is_packed ? bytes : 0) + half(message.quantized));
    if (is_packed) {
      walked_.temporaries.add(bytes);
      message.bytes += bytes;
    } else {
      gather_alone(message.tensors.front());
    }
  }

  void unpack(Message& message) {
    message.is_unpacked = true;
    if (message.quantized > 0) dequantize(message);
    if (message.tensors.size() == 1 && message.quantized > 0) return;
    for (const std::size_t tensor : message.tensors) {
      stored_[tensor] = times(walked_.layout.numel(tensor), walked_.e());
      walked_.full.add(stored_[tensor]);
    }
  }

  using Place = std::list<Message>::iterator;

  Walked& walked_;
  std::list<Message> messages_;
  std::map<std::size_t, Place> packed_;  // not yet awaited
  std::map<std::size_t, Place> shared_;  // stay in an all-reduced message
  std::map<std::size_t, Bytes> stored_;  // have storage of their own
};

/// The bytes of ShardedGradients.
class BucketWalk {
 public:
  explicit BucketWalk(Walked& walked) : walked_(walked) {}

  void begin(bool first) { is_first_ = first; }

  /// The gradient is already counted; it is freed where it is copied.
  void add(std::size_t tensor) {
    const std::int64_t numel = walked_.layout.numel(tensor);
    if (!tensors_.empty() && fill_ + numel > capacity()) flush();
    tensors_.push_back(tensor);
    fill_ += numel;
    if (walked_.config.contiguous_gradients && fill_ <= capacity()) {
      walked_.gradients.remove(times(numel, walked_.e()));
    } else {
      waiting_ += numel;
    }
  }

  void flush() {
    if (tensors_.empty()) return;
    const bool in_bucket = walked_.config.contiguous_gradients && fill_ <= capacity();
    if (in_bucket && !walked_.config.reduce_scatter) {
      average_whole();
    } else {
      scatter();
    }
    walked_.gradients.remove(times(waiting_, walked_.e()));
    waiting_ = fill_ = 0;
    tensors_.clear();
  }

 private:
  std::int64_t capacity() const { return walked_.config.reduce_bucket_size; }
  Bytes message() const { return size_of(walked_.config.message_dtype()); }
  bool casts() const { return walked_.config.message_dtype() != walked_.config.dtype; }
  std::int64_t own(std::size_t tensor) const { return walked_.layout.filled(tensor, walked_.rank); }

  /// A shard is cast to be added to sums of another type.
  Bytes largest_sum_cast() const {
    const DType sums = walked_.config.accumulation_dtype();
    if (is_first_ || sums == walked_.config.dtype) return 0;
    std::int64_t largest = 0;
    for (const std::size_t tensor : tensors_) largest = std::max(largest, own(tensor));
    return times(largest, size_of(sums));
  }

  void average_whole() {
    const bool multiplies = !walked_.config.prescale_gradients && walked_.ranks > 1;
    const Bytes product = multiplies ? times(fill_, message()) : 0;
    const Bytes cast = casts() ? times(fill_, walked_.e()) : 0;
    walked_.temporaries.with(product + cast);
    walked_.temporaries.with((casts() ? cast : product) + largest_sum_cast());
  }

  void scatter() {
    std::int64_t staged = 0;
    std::int64_t parts = 0;
    for (const std::size_t tensor : tensors_) {
      staged += walked_.padded(tensor);
      parts += own(tensor);
    }
    const bool alone =
        tensors_.size() == 1 && walked_.layout.numel(tensors_.front()) % walked_.ranks == 0;
    Bytes bytes = alone ? 0 : times(staged, message());
    if (casts()) bytes += times(waiting_, message()) + times(parts, walked_.e());
    walked_.temporaries.with(bytes + largest_sum_cast());
  }

  Walked& walked_;
  Tensors tensors_;
  std::int64_t fill_ = 0;
  std::int64_t waiting_ = 0;  // elements that were not copied into the bucket
  bool is_first_ = true;
};

/// Two steps: the one that records, and the one like all that follow.
class StepWalk {
 public:
  StepWalk(Walked& walked, Bytes attention_scratch)
      : walked_(walked),
        scratch_(attention_scratch),
        trace_(make_hook_trace(walked.parameters.num_layers())),
        coordinator_(make_parameter_coordinator(walked.config, walked.parameters)),
        gathers_(walked),
        bucket_(walked),
        leaf_of_(walked.parameters.modules.size()) {
    for (const Arrival& arrival : backward_arrivals(walked.parameters)) {
      arrivals_[arrival.tensor] = arrival;
    }
    for (const std::size_t leaf : find_leaf_modules(walked.config, walked.parameters)) {
      for (std::size_t inner = leaf; inner < walked.parameters.end_of(leaf); ++inner) {
        leaf_of_[inner] = leaf;
      }
    }
  }

  void step() {
    for (std::int64_t micro = 0; micro < walked_.config.accumulation_steps; ++micro) {
      bucket_.begin(micro == 0);
      coordinator_.begin_forward();
      for (const HookEvent& event : trace_.forward) follow(event);
      for (const HookEvent& event : trace_.backward) follow(event);
      bucket_.flush();
      gathers_.release(coordinator_.release_leftovers());
    }
    gathers_.release(coordinator_.release_all());
    update();
    const Tensors persistent = coordinator_.persistent_tensors();
    gathers_.gather_persistent(persistent);
    coordinator_.regathered(persistent);
  }

 private:
  void follow(const HookEvent& event) {
    if (event.kind == HookEvent::Kind::attention) {
      walked_.temporaries.with(scratch_);
    } else if (event.kind == HookEvent::Kind::gradient) {
      arrive(arrivals_.at(event.index));
    } else if (!leaf_of_[event.index] || *leaf_of_[event.index] == event.index) {
      event.kind == HookEvent::Kind::fetch ? enter(event.index) : leave(event.index);
    }
  }

  void enter(std::size_t module) {
    const auto plan = coordinator_.fetch(module);
    gathers_.gather(plan.gather);
    gathers_.await(plan.await);
    gathers_.gather(plan.prefetch);
    if (leaf_of_[module]) open_leaf_ = module;
  }

  void leave(std::size_t module) {
    if (open_leaf_ == module) reduce_leaf();
    gathers_.release(coordinator_.release(module));
  }

  void arrive(const Arrival& arrival) {
    walked_.gradients.add(times(arrival.numel, walked_.e()));
    walked_.gradients.with(times(arrival.others, walked_.e()));
    if (open_leaf_) {
      leaf_tensors_.push_back(arrival.tensor);
    } else {
      bucket_.add(arrival.tensor);
    }
  }

  void reduce_leaf() {
    for (const SubGroup& group : walked_.layout.sub_groups()) {
      for (const std::size_t tensor : group.tensors) {
        if (std::count(leaf_tensors_.begin(), leaf_tensors_.end(), tensor) > 0) {
          bucket_.add(tensor);
        }
      }
    }
    leaf_tensors_.clear();
    open_leaf_.reset();
  }

  void update() {
    const StepConfig& config = walked_.config;
    if (config.dtype == DType::fp16) walked_.temporaries.with(times(walked_.layout.numel(), 1));
    std::int64_t largest = 0;
    for (std::size_t tensor = 0; tensor < walked_.layout.tensor_count(); ++tensor) {
      largest = std::max(largest, walked_.layout.shard(tensor));
    }
    walked_.temporaries.with(times(largest, 8));
    const DType sums = config.accumulation_dtype();
    for (const SubGroup& group : walked_.layout.sub_groups()) {
      walked_.temporaries.with(times(group.numel, sums == DType::fp32 ? 4 : size_of(sums) + 4));
    }
  }

  Walked& walked_;
  Bytes scratch_;
  HookTrace trace_;
  ParameterCoordinator coordinator_;
  GatherWalk gathers_;
  BucketWalk bucket_;
  std::vector<std::optional<std::size_t>> leaf_of_;
  std::optional<std::size_t> open_leaf_;
  Tensors leaf_tensors_;
  std::map<std::size_t, Arrival> arrivals_;
};

}  // namespace

ModelStateMemory predict_sharded(const StepConfig& config, const ModelParameters& parameters,
                                 int ranks, int rank, Bytes attention_scratch) {
  Walked walked{config,
                parameters,
                {make_parameter_groups(config.optimizer, parameters), parameters, ranks,
                 config.sub_group_size},
                ranks,
                rank,
                {},
                {},
                {}};
  StepWalk walk(walked, attention_scratch);
  walk.step();
  walk.step();

  const std::int64_t shards = walked.layout.numel();
  const Bytes own = times(shards, walked.e());
  const Bytes sums = times(shards, size_of(config.accumulation_dtype()));
  MemoryUse use;
  use.at(MemoryCategory::parameters) = own + walked.full.now();
  use.at(MemoryCategory::gradients) = sums;
  use.at(MemoryCategory::optimizer) = times(shards, 12);
  if (config.contiguous_gradients) {
    use.at(MemoryCategory::buckets) =
        times(config.reduce_bucket_size, size_of(config.message_dtype()));
  }
  ModelStateMemory memory{use, use};
  memory.peak.at(MemoryCategory::parameters) = own + walked.full.peak();
  memory.peak.at(MemoryCategory::gradients) = sums + walked.gradients.peak();
  memory.peak.at(MemoryCategory::temporaries) = walked.temporaries.peak();
  return memory;
}

}  // namespace dstune
