// NCCL's collectives and messages.
#include "tests/support/cuda_on_host/nccl/group.hpp"

using namespace cuda_on_host;

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return add_collective("ncclAllReduce", comm, stream,
                        {Collective::all_reduce, sendbuff, recvbuff, count, datatype, op});
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return add_collective("ncclReduce", comm, stream,
                        {Collective::reduce, sendbuff, recvbuff, count, datatype, op, root});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return add_collective("ncclReduceScatter", comm, stream,
                        {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op});
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return add_collective("ncclAllGather", comm, stream,
                        {Collective::all_gather, sendbuff, recvbuff, sendcount, datatype});
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return add_collective(
      "ncclBroadcast", comm, stream,
      {Collective::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add_transfer("ncclSend", comm, stream,
                      {true, const_cast<void*>(sendbuff), count, datatype, peer});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add_transfer("ncclRecv", comm, stream, {false, recvbuff, count, datatype, peer});
}
