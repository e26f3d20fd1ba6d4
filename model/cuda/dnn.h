// dnn.h - cuDNN's backend interface, loaded only for attention=cudnn.
//
// cuDNN is a package of its own, which many CUDA installations lack. So the
// build does not need it. Its functions are found by name, and the numbers
// below are those of cudnn_graph.h. They are the same in every cuDNN 9;
// tests/cudnn_numbers.c compares them with the header if that is installed.

#pragma once

#include <stddef.h>
#include <stdint.h>

// The oldest version that has accepted attention's operation graphs here.
enum { DNN_OLDEST = 90800 };

// cudnnBackendDescriptorType_t
enum dnn_descriptor {
    DNN_POINTWISE = 0,
    DNN_ENGINE = 2,
    DNN_ENGINE_CONFIG = 3,
    DNN_HEURISTICS = 4,
    DNN_PLAN = 5,
    DNN_OP_POINTWISE = 13,
    DNN_OP_GRAPH = 15,
    DNN_PACK = 16,
    DNN_TENSOR = 17,
    DNN_MATMUL = 18,
    DNN_OP_MATMUL = 19,
    DNN_REDUCTION = 21,
    DNN_OP_REDUCTION = 22,
    DNN_OP_RESHAPE = 31,
    DNN_DEVICE = 38
};

// cudnnBackendAttributeName_t
enum dnn_attribute {
    DNN_POINTWISE_MODE = 0,
    DNN_POINTWISE_MATH = 1,
    DNN_POINTWISE_AXIS = 9,
    DNN_HEURISTICS_MODE = 200,
    DNN_HEURISTICS_GRAPH = 201,
    DNN_HEURISTICS_RESULTS = 202,
    DNN_HEURISTICS_DEVICE = 204,
    DNN_CONFIG_ENGINE = 300,
    DNN_PLAN_HANDLE = 400,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_PLAN_DEVICE = 407,
    DNN_OP_POINTWISE_DESC = 750,
    DNN_OP_POINTWISE_X = 751,
    DNN_OP_POINTWISE_B = 752,
    DNN_OP_POINTWISE_Y = 753,
    DNN_OP_POINTWISE_T = 758,
    DNN_GRAPH_HANDLE = 800,
    DNN_GRAPH_OPS = 801,
    DNN_TENSOR_ALIGNMENT = 900,
    DNN_TENSOR_DATA = 901,
    DNN_TENSOR_DIMENSIONS = 902,
    DNN_TENSOR_STRIDES = 903,
    DNN_TENSOR_ID = 906,
    DNN_TENSOR_VIRTUAL = 907,
    DNN_TENSOR_BY_VALUE = 908,
    DNN_PACK_IDS = 1000,
    DNN_PACK_POINTERS = 1001,
    DNN_PACK_WORKSPACE = 1003,
    DNN_ENGINE_NOTES = 1303,
    DNN_MATMUL_COMPUTE = 1500,
    DNN_OP_MATMUL_A = 1520,
    DNN_OP_MATMUL_B = 1521,
    DNN_OP_MATMUL_C = 1522,
    DNN_OP_MATMUL_DESC = 1523,
    DNN_REDUCTION_OPERATOR = 1600,
    DNN_REDUCTION_COMPUTE = 1601,
    DNN_OP_REDUCTION_X = 1610,
    DNN_OP_REDUCTION_Y = 1611,
    DNN_OP_REDUCTION_DESC = 1612,
    DNN_OP_RESHAPE_X = 2200,
    DNN_OP_RESHAPE_Y = 2201,
    DNN_DEVICE_JSON = 2702
};

// cudnnBackendAttributeType_t
enum dnn_type {
    DNN_TYPE_HANDLE = 0,
    DNN_TYPE_DATA = 1,
    DNN_TYPE_BOOL = 2,
    DNN_TYPE_INT64 = 3,
    DNN_TYPE_POINTER = 6,
    DNN_TYPE_HEURISTICS = 8,
    DNN_TYPE_NOTE = 11,
    DNN_TYPE_POINTWISE = 14,
    DNN_TYPE_DESCRIPTOR = 15,
    DNN_TYPE_REDUCTION = 18,
    DNN_TYPE_CHAR = 24
};

// cudnnDataType_t
enum dnn_data {
    DNN_FLOAT = 0,
    DNN_HALF = 2,
    DNN_INT32 = 4,
    DNN_BFLOAT16 = 9,
    DNN_BOOLEAN = 11
};

// cudnnPointwiseMode_t. SELECT: y = t ? x : b.
enum dnn_pointwise {
    DNN_ADD = 0,
    DNN_MUL = 1,
    DNN_DIV = 6,
    DNN_SUB = 9,
    DNN_EXP = 13,
    DNN_LOG = 15,
    DNN_GE = 303,
    DNN_INDEX = 501,
    DNN_SELECT = 601
};

// cudnnReduceTensorOp_t
enum dnn_reduction { DNN_SUM = 0, DNN_MAX = 3 };

// cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t
enum { DNN_MODE_FALLBACK = 2, DNN_MODE_A = 3 };
enum { DNN_NOTE_NONDETERMINISTIC = 4, DNN_NOTES = 16 };

#define DNN_FUNCTIONS(F)                                                       \
    F(size_t, GetVersion, (void))                                              \
    F(size_t, GetCudartVersion, (void)) /* major * 1000 + minor * 10 */        \
    F(const char *, GetErrorString, (int status))                              \
    F(void, GetLastErrorString, (char *text, size_t bytes))                    \
    F(int, Create, (void **handle))                                            \
    F(int, Destroy, (void *handle))                                            \
    F(int, SetStream, (void *handle, void *stream))                            \
    F(int, BackendCreateDescriptor, (int descriptor, void **made))             \
    F(int, BackendDestroyDescriptor, (void *made))                             \
    F(int, BackendFinalize, (void *made))                                      \
    F(int, BackendSetAttribute,                                                \
      (void *made, int name, int type, int64_t n, const void *values))         \
    F(int, BackendGetAttribute,                                                \
      (void *made, int name, int type, int64_t most, int64_t *n,               \
       void *values))                                                          \
    F(int, BackendExecute, (void *handle, void *plan, void *pack))

#define DNN_MEMBER(result, name, arguments) result(*name) arguments;

// dnn.Create is cudnnCreate, and so on. Functions that return int return 0, or
// a cudnnStatus_t.
struct dnn {
    void *library;
    void *handle;     // of cudnnCreate()
    const char *gpu;  // the handle's, for messages; NULL: not known; borrowed
    void *device;     // a finalized DNN_DEVICE to plan for, instead of handle
    size_t version;   // major * 10000 + minor * 100 + patch level
    char release[64]; // the same as a text: "9.8.0"
    DNN_FUNCTIONS(DNN_MEMBER)
};

// Loads the library, checks its version, and loads the cuBLASLt of its CUDA.
// Returns 0, or -1 after fail(); then there is nothing to close.
int dnn_load(struct dnn *dnn);

// Loads the library and opens a handle that puts its work into `stream`, a
// cudaStream_t. Returns 0, or -1 after fail(); call dnn_close() in both cases.
int dnn_open(struct dnn *dnn, void *stream);

// Accepts a struct of zeros, and one whose dnn_open() has failed.
void dnn_close(struct dnn *dnn);

// fail("attention=cudnn: cuDNN 9.8.0 on GPU: WHAT: STATUS (cuDNN's own reason);
// try: attention=ours"), which is -1. A status of 0 is left out.
int dnn_fail(const struct dnn *dnn, const char *what, int status);
