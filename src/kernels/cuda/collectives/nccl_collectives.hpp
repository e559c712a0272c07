// Collectives of GPU tensors, with NCCL.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/collectives.hpp"
#include "kernels/cuda/collectives/communicator_maker.hpp"
#include "kernels/cuda/collectives/nccl_communicator.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

/// Queued on the communication stream. One rank needs no NCCL. A part's communicator is made, from
/// the whole's, at the part's first call: collective over the whole, as sub_group() says.
///
/// While the host waits for the device, NCCL's errors are looked at too.
/// Calls throw what NcclCommunicator throws; then the whole communicator has to end.
class NcclCollectives final : public Collectives {
 public:
  /// What is known when it ends.
  struct End {
    CommunicatorCost parts;  ///< what this object has made
    bool has_failed;         ///< an exception is in flight, or NCCL failed
  };

  /// @param communicator  of the maker's group, nullptr for one rank; it must outlive this object
  /// @param on_end        called by the destructor
  NcclCollectives(CudaDevice& device, const CommunicatorMaker& maker,
                  NcclCommunicator* communicator, std::string network,
                  std::function<void(const End&)> on_end);
  ~NcclCollectives() override;

  std::string network() const override { return network_; }

 private:
  NcclCollectives(NcclCollectives& whole, std::vector<int> ranks, int own);

  void do_all_reduce(Tensor inout, ReduceOp op) override;
  void do_reduce(Tensor inout, ReduceOp op, int root) override;
  void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) override;
  void do_all_gather(Tensor in, Tensor out) override;
  void do_broadcast(Tensor inout, int root) override;
  void do_all_to_all(Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;
  void do_begin_coalescing() override;
  void do_end_coalescing() override;

  NcclCommunicator* communicator();
  template <class Call>
  void queue(const char* name, Tensor sent, Call call);
  void copy(Tensor from, Tensor to);
  void look_for_errors();

  CudaDevice& device_;
  NcclCollectives* whole_ = nullptr;  ///< of which this is a part
  CommunicatorMaker maker_;           ///< the whole's is used
  NcclCommunicator* communicator_;    ///< of a part: nullptr before its first call
  std::vector<int> ranks_;            ///< of a part: ranks of the whole
  std::string network_;
  std::function<void(const End&)> on_end_;
  int exceptions_;          ///< in flight when this was made
  bool coalesces_ = false;  ///< NCCL's group of calls is open
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace dstune::cuda
