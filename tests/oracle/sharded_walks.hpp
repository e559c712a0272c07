// The bytes of stage 3's gathers and gradients, step by step: parts of predict_sharded().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "core/device/memory/memory_budget.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune::oracle::sharded {

using Tensors = std::vector<std::size_t>;

inline Bytes times(std::int64_t elements, Bytes each) {
  return static_cast<Bytes>(elements) * each;
}

/// What is allocated of one category, now and at most.
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
  std::int64_t ranks;  ///< that share one copy of the model
  int rank;            ///< among them
  int secondary;       ///< ranks that share secondary shards; 1: there are none
  NodeGrid nodes;      ///< over which gradients are quantised; one: they are not
  Level full;          ///< parameters beside the shards
  Level gradients;     ///< beside their shards
  Level temporaries;

  Bytes e() const { return size_of(config.dtype); }
  std::int64_t padded(std::size_t tensor) const { return ranks * layout.shard(tensor); }
};

/// GatheredParameters: the same calls.
class GatherWalk {
 public:
  explicit GatherWalk(Walked& walked) : walked_(walked) {}

  void gather(const Tensors& tensors);
  void gather_persistent(const Tensors& tensors);
  void await(const Tensors& tensors);
  void release(const Tensors& tensors);
  void forget_secondary();

 private:
  struct Message {
    Tensors tensors;
    Bytes bytes = 0;
    std::size_t left = 0;  // not yet awaited, or released where they stay in it
    bool is_unpacked = false;
    std::int64_t quantized = 0;  // elements of all ranks, if it travels as int8
  };
  using Place = std::list<Message>::iterator;

  void gather_from(const Tensors& tensors, bool pack);
  void gather_alone(std::size_t tensor);
  void gather_together(const Tensors& tensors, bool pack);
  void gather_quantized(const Tensors& tensors, std::int64_t ranks);
  void dequantize(Message& message);
  Bytes half(std::int64_t elements) const;
  void unpack(Message& message);
  void keep_secondary(std::size_t tensor);
  Bytes secondary_bytes(std::size_t tensor) const;

  Walked& walked_;
  std::list<Message> messages_;
  std::map<std::size_t, Place> packed_;  // not yet awaited
  std::map<std::size_t, Place> shared_;  // stay in an all-reduced message
  std::map<std::size_t, Bytes> stored_;  // have storage of their own
  std::set<std::size_t> secondary_;      // have a secondary shard
};

/// ShardedGradients: the same calls.
class BucketWalk {
 public:
  explicit BucketWalk(Walked& walked) : walked_(walked) {}

  void begin_micro_step(bool first) { is_first_ = first; }
  /// A gradient that is already counted: it is freed where it is copied.
  void add(std::size_t tensor);
  void flush();

 private:
  std::int64_t capacity() const { return walked_.config.reduce_bucket_size; }
  Bytes message() const { return size_of(walked_.config.message_dtype()); }
  bool casts() const { return walked_.config.message_dtype() != walked_.config.dtype; }
  std::int64_t own(std::size_t tensor) const { return walked_.layout.filled(tensor, walked_.rank); }
  Bytes largest_sum_cast() const;
  void average_whole();
  void scatter();
  Bytes average_each();

  Walked& walked_;
  Tensors tensors_;
  std::int64_t fill_ = 0;
  std::int64_t waiting_ = 0;  // elements that were not copied into the bucket
  bool is_first_ = true;
};

}  // namespace dstune::oracle::sharded
