#include "core/train/zero/bucket_average.hpp"

#include "core/train/zero/passes.hpp"

namespace dstune {

void append_slice(std::vector<BucketSlice>& slices, BucketSlice next) {
  if (!slices.empty() && slices.back().owner == next.owner) {
    slices.back().numel += next.numel;
  } else {
    slices.push_back(next);
  }
}

void BucketAverage::by_slices(Tensor bucket, const std::vector<BucketSlice>& slices) const {
  Passes(device).scale(Pass::average, bucket, 1.0 / collectives.size());
  const BucketSlice* begin = slices.data();
  const BucketSlice* const end = begin + slices.size();
  std::int64_t offset = 0;
  std::int64_t fill = 0;
  for (const BucketSlice* next = begin; next != end; ++next) {
    fill += next->numel;
    if (fill <= capacity && next + 1 != end) continue;
    reduce_run(bucket.slice(offset, fill), begin, next + 1);
    begin = next + 1;
    offset += fill;
    fill = 0;
  }
}

// A single slice needs no copy: flattening one tensor is a view.
void BucketAverage::reduce_run(Tensor part, const BucketSlice* begin,
                               const BucketSlice* end) const {
  if (end - begin == 1) {
    all_reduce(part);
    return;
  }
  const Buffer flat = make_buffer(device, MemoryCategory::temporaries, part.numel, part.dtype);
  const Tensor sum = flat.tensor(part.dtype);
  const Passes passes(device);
  passes.copy(Pass::flatten, part, sum);
  all_reduce(sum);
  std::int64_t offset = 0;
  for (const BucketSlice* slice = begin; slice != end; ++slice) {
    if (slice->owner == collectives.rank()) {
      passes.copy(Pass::flatten, sum.slice(offset, slice->numel), part.slice(offset, slice->numel));
    }
    offset += slice->numel;
  }
}

void BucketAverage::as_whole(Tensor bucket) const {
  all_reduce(bucket);
  if (collectives.size() > 1) {
    Passes(device).scale(Pass::average, bucket, 1.0 / collectives.size());
  }
}

void BucketAverage::all_reduce(Tensor inout) const {
  device.wait(stream, Stream::compute);
  collectives.all_reduce(inout, ReduceOp::sum, Purpose::gradients, stream);
  device.wait(Stream::compute, stream);
}

}  // namespace dstune
