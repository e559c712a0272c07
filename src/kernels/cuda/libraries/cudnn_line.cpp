#include "kernels/cuda/libraries/cudnn_line.hpp"

#include "core/base/text.hpp"
#include "kernels/cuda/attention/fused.hpp"
#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda {

std::string cudnn_line() {
  const std::string line =
      library_line("cuDNN", cudnn_library(), [] { return cudnn().GetVersion(); });
  const std::string_view why_not = why_never_fused();
  return why_not.empty() ? line : concat(line, ", not used: ", why_not);
}

}  // namespace dstune::cuda
