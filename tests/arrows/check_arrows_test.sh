#!/usr/bin/env bash
# usage: check_arrows_test.sh path/to/check_arrows.sh
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{core/{base,model,device,train/zero/{layout,gather},config,report,search/{schedule,tuners}},mpi,kernels/{cpu,host}}

# expect CODE FILE INCLUDE: the verdict on a tree whose only file has that one include.
failures=0
expect() {
  echo "#include $3" >"$tree/$2"
  local code=0
  bash "$check" "$tree" >/dev/null 2>&1 || code=$?
  rm "$tree/$2"
  [ "$code" -eq "$1" ] || { echo "$2 with $3: exit code $code, not $1"; failures=1; }
}

expect 1 core/train/a.cpp '<mpi.h>'
expect 1 core/train/a.hpp '"mpi/group.hpp"'
expect 1 core/search/a.cpp '"kernels/backend.hpp"'
expect 1 core/model/a.cpp '<cblas.h>'
expect 1 core/base/a.cpp '"core/model/model_spec.hpp"'
expect 1 core/train/a.cpp '"core/config/command_line/command_line.hpp"'
expect 1 core/report/a.cpp '"core/search/tuners/tune.hpp"'
expect 1 core/train/a.cpp '<boost/program_options.hpp>'
expect 1 core/search/schedule/a.hpp '"core/search/tuners/tune.hpp"'
expect 1 core/train/zero/layout/a.cpp '"core/train/zero/gather/quantized_gather.hpp"'
expect 1 kernels/cpu/a.hpp '"core/train/training_step.hpp"'
expect 1 mpi/a.cpp '"kernels/backend.hpp"'
expect 1 mpi/a.cpp '<cuda_runtime_api.h>'
expect 1 kernels/cpu/a.cpp '<mpi.h>'
expect 1 kernels/host/a.cpp '"kernels/cpu/elements.hpp"'
expect 1 kernels/host/a.hpp '"kernels/cuda/cuda_info.hpp"'
expect 1 kernels/cpu/a.cu '"mpi/base/communicator.hpp"'

expect 1 commands.cpp '"tuner_rank.hpp"'

expect 0 core/search/a.cpp '"core/base/text.hpp"'
expect 0 core/search/tuners/a.cpp '"core/search/schedule/scheduler.hpp"'
expect 0 kernels/cpu/a.cpp '"core/device/device.hpp"'
expect 0 core/config/a.cpp '<boost/program_options.hpp>'
expect 0 mpi/a.cpp '<mpi.h>'
expect 0 kernels/cpu/a.cpp '<cblas.h>'
expect 0 kernels/cpu/a.cpp '"kernels/host/passes.hpp"'
expect 0 kernels/host/a.cpp '"kernels/optimizers.hpp"'
expect 0 main.cpp '"commands.hpp"'
expect 0 commands.cpp '"commands.hpp"'

# expect_types CODE TEXT TEXT: the verdict on two headers of folders that do not know each other.
expect_types() {
  echo "$2" >"$tree/core/train/a.hpp"
  echo "$3" >"$tree/mpi/b.hpp"
  local code=0
  bash "$check" "$tree" >/dev/null 2>&1 || code=$?
  rm "$tree/core/train/a.hpp" "$tree/mpi/b.hpp"
  [ "$code" -eq "$1" ] || { echo "$2 and $3: exit code $code, not $1"; failures=1; }
}

# expect_question CODE LINE: the verdict on a line of core, where one backend is listed.
expect_question() {
  echo '  X(tpu, .place = 1)' >"$tree/core/device/backend_list.hpp"
  echo "$2" >"$tree/core/search/a.cpp"
  local code=0
  bash "$check" "$tree" >/dev/null 2>&1 || code=$?
  rm "$tree/core/device/backend_list.hpp" "$tree/core/search/a.cpp"
  [ "$code" -eq "$1" ] || { echo "$2: exit code $code, not $1"; failures=1; }
}

expect_question 1 'if (settings.backend == "tpu") return 1;'
expect_question 1 'if ("tpu" != settings.backend) return 1;'
expect_question 0 'if (settings.backend == "auto") return "tpu";'

mkdir "$tree/core/other"
expect 1 core/base/a.cpp '"core/base/text.hpp"'
rmdir "$tree/core/other"

expect_types 1 'class Message {' 'struct Message {'
expect_types 1 'class Message final : public Text {' 'enum class Message {'
expect_types 0 'class Message {' 'class Message;'
expect_types 0 'class Message {' 'class MessageText {'
exit "$failures"
