#include "core/train/zero/offload/offloaded_sharded_engine.hpp"

#include "core/device/operations/optimizers.hpp"

namespace dstune {

OffloadedShardedEngine::OffloadedShardedEngine(const EngineContext& context)
    : ShardedEngine(context, States::elsewhere),
      sub_groups_(device(), config(), layout(), parameter_shards(), shards().rank()),
      gradients_(device(), config(), layout(), sub_groups_),
      invalid_(device()) {
  bring_to(gradients_);
  bring_each_once();
}

// The flag goes to the device on the stream of the reductions.
bool OffloadedShardedEngine::overflowed() {
  const bool overflow = any_overflow(shards(), [&](Tensor flag) {
    const bool own = gradients_.has_overflow();
    device().wait(reductions(), device().record(Stream::compute));
    {
      const StreamScope scope(device(), reductions());
      device().write_scalar(own ? 1 : 0, flag);
    }
    device().wait(Stream::compute, device().record(reductions()));
  });
  if (overflow) gradients_.forget_norms();
  return overflow;
}

void OffloadedShardedEngine::update() {
  const double factor = dstune::clip_factor(squares(), config().gradient_clipping, loss_scale());
  for (std::size_t i = 0; i < layout().sub_groups().size(); ++i) {
    const SubGroup& group = layout().sub_groups()[i];
    sub_groups_.update(i, next_update(group.weight_decay), factor);
  }
  gradients_.forget_norms();
}

// The host reads a sub-group's sum, sends it as fp32 for the sum over the ranks, and then the value
// that a norm gets which is inf or NaN; it reads the norm that is left.
double OffloadedShardedEngine::squares() {
  start_norm();
  double sum = 0;
  for (const SubGroup& group : layout().sub_groups()) {
    add_squares_of(shards(),
                   [&](Tensor part) { device().write_scalar(gradients_.squares(group), part); });
    device().write_scalar(-1, invalid_.tensor());
    sum = device().read_scalar(EngineBase::squares(), HostSync::blocking_copy);
  }
  return sum;
}

void OffloadedShardedEngine::read_master(std::size_t tensor, Tensor own) {
  sub_groups_.read_master(tensor, own);
}

void OffloadedShardedEngine::write_master(std::size_t tensor, std::span<const float> own) {
  const auto count = static_cast<std::int64_t>(own.size());
  const Buffer values = temporary(count, DType::fp32);
  device().write(own, values.tensor(DType::fp32));
  sub_groups_.write_master(tensor, values.tensor(DType::fp32));
}

}  // namespace dstune
