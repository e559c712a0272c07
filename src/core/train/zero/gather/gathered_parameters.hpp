// Stage 3: the full tensors that are gathered, and how they are gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/in_flight_limit.hpp"
#include "core/train/zero/gather/parameter_shards.hpp"
#include "core/train/zero/gather/quantized_gather.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

/// How several tensors are gathered at once.
enum class GatherMethod {
  packed,      ///< one all-gather into a rank-major buffer, from which each is copied
  sequential,  ///< one all-gather for each, received where it stays (stage3_allgather_sequential)
  coalesced,   ///< one all-gather for each as in `sequential`, all in one launch (MiCS)
  all_reduce   ///< one all-reduce of a zero-filled buffer, in which they stay
               ///< (stage3_use_all_reduce_for_fetch_params)
};

/// Carries out what ParameterCoordinator decides. Gathers do not wait for the update, since the
/// host does at the end of every step, as in DeepSpeed. A gather runs on its stream from gather()
/// on; its tensors may be read after await(). A gather of one tensor is received where the tensor
/// stays, padded to N times its shard. The buffer of a packed gather is unpacked, for all its
/// tensors, when the first of them is awaited, and freed when the last of them has been awaited
/// (AllGatherCoalescedHandle).
///
/// hpZ: the release of a tensor leaves a secondary shard, which is N / z times as large as the
/// primary one. The tensor is gathered from it among the z ranks of the secondary group until
/// forget_secondary() names it. A gather of some tensors with and some without a secondary shard
/// becomes two.
///
/// A quantised gather travels as QuantizedGather says and is dequantised when the first of its
/// tensors is awaited; its message stays until the last of them has been awaited. The gathers after
/// the update are never quantised.
///
/// A shard that lives on the host comes to the device on the stream of the gather that needs it,
/// and the host waits for each: into a temporary tensor of its own, which is freed when the gather
/// has been launched, or, of an all_reduce, into the message.
///
/// A shard on a drive comes into a buffer of the host first, where it stays until its tensor is
/// released.
///
/// With one rank nothing is gathered: a tensor is its own shard, and await() of a gather
/// synchronises the device. One that lives on the host is copied to where it stays, and await()
/// makes the host wait for the stream of the copies.
class GatheredParameters {
 public:
  using Tensors = std::vector<std::size_t>;

  struct Setup {
    DType dtype = DType::fp32;
    Stream stream = Stream::compute;
    GatherMethod method = GatherMethod::packed;
    Collectives* secondary = nullptr;  ///< hpZ's group; none: no secondary shards
    bool quantized = false;            ///< as int8 (zero_quantized_weights); always packed
    Purpose purpose = Purpose::parameters;
  };

  GatheredParameters(Device& device, Collectives& collectives, const ShardLayout& layout,
                     Setup setup);

  /// @param shards  this rank's, of `layout`; they must outlive this object
  void use(ParameterShards& shards) { shards_ = &shards; }

  /// Starts to gather tensors that are not there; they are in ascending order. Does nothing for an
  /// empty list. Each of them is a HostEvent::gathered_tensor, which has its release too.
  /// @throws QuantizationRefused  if DeepSpeed cannot quantise their message
  void gather(const Tensors& tensors);
  /// Makes the compute stream wait for those of `tensors` that were not awaited since their gather.
  void await(const Tensors& tensors);
  void release(const Tensors& tensors);
  /// Gathers tensors that are not there by a call of each and waits for all of them, as after the
  /// update. Shards on the host are copied first; if there is one tensor, or the method is
  /// sequential, each is copied and gathered before the next.
  /// They are no gathered_tensor: in DeepSpeed the coordinator, whose Python that is, has no part.
  void gather_persistent(const Tensors& tensors);
  /// Called after the update of `tensors`, which makes their secondary shards outdated.
  void forget_secondary(const Tensors& tensors);
  /// The elements of a tensor that is gathered and awaited.
  Tensor full(std::size_t tensor) const;
  /// The memory of such a tensor, which whoever holds it keeps after the tensor's release; none
  /// where a tensor is its own shard.
  std::shared_ptr<const Buffer> memory_of(std::size_t tensor) const { return storage_[tensor]; }

 private:
  /// The shards that are gathered, and the ranks among which they are.
  struct Source {
    Collectives* group;
    std::int64_t factor;  // primary shards in one shard of this source
  };
  /// The tensors that are gathered in one call.
  struct Group {
    Source source{};
    Tensors tensors;
    Buffer buffer;  // packed: what was received
    std::optional<QuantizedMessage> message;
    Event received;           // when the message has arrived
    Event ready;              // when the tensors can be read
    std::int64_t stride = 0;  // packed: elements from one rank
    bool is_packed = false;
    bool arrived = false;
    std::size_t members = 0;  // tensors not yet awaited
  };

  Source primary() const { return {&collectives_, 1}; }
  Source secondary() const;
  std::int64_t shard_numel(const Source& source, std::size_t tensor) const;
  PlacedTensor shard(const Source& source, std::size_t tensor) const;
  void gather_from(const Source& source, const Tensors& tensors);
  void take_own(const Tensors& tensors);
  void keep_secondary(std::size_t tensor);
  Group& add_group(const Source& source, Tensors tensors);
  void leave_group(std::size_t tensor);
  void gather_alone(const Source& source, std::size_t tensor);
  /// Where a tensor that is gathered alone is received.
  Tensor make_whole(const Source& source, std::size_t tensor);
  void launch(const Source& source, std::size_t tensor, Tensor own, Tensor whole);
  void gather_packed(const Source& source, const Tensors& tensors);
  void gather_by_all_reduce(const Tensors& tensors);
  void gather_quantized(const Source& source, const Tensors& tensors);
  void gather_coalesced(const Source& source, const Tensors& tensors);
  void gather_one_by_one(const Tensors& tensors);
  void gather_after_all_copies(const Tensors& tensors);
  std::shared_ptr<Buffer> parameters(std::int64_t numel) const;
  void finish(Group& group);
  void dequantize(Group& group);
  QuantizedGather quantized(const Source& source) const {
    return {device_, *source.group, setup_.dtype};
  }
  void unpack(const Group& group);

  Device& device_;
  Collectives& collectives_;
  const ShardLayout& layout_;
  Setup setup_;
  ParameterShards* shards_ = nullptr;
  std::list<Group> groups_;
  std::vector<std::list<Group>::iterator> group_of_;  // by tensor; end(): none
  std::vector<bool> awaits_;  // by tensor: it is gathered and not yet awaited
  /// By tensor. Tensors of one all_reduce share it.
  std::vector<std::shared_ptr<Buffer>> storage_;
  std::vector<Tensor> full_;       // by tensor
  std::vector<Buffer> secondary_;  // by tensor: the secondary shards
  InFlightLimit in_flight_limit_;
};

}  // namespace dstune
