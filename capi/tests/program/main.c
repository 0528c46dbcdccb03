/* A program in C that is linked to onnxruntime's library: loads a model, says what is in it, runs it.
 *
 * Programs usually include onnxruntime's header. The places of functions in its table are written out here instead, with
 * the types of their parameters at each call. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const void *const *(*GetApi)(uint32_t version);
typedef struct {
    GetApi get_api;
    const char *(*version)(void);
} Base;

const Base *OrtGetApiBase(void);

typedef struct Status Status;
static const void *const *api;

enum {
    GetErrorCode = 1, GetErrorMessage = 2, CreateEnv = 3, CreateSession = 7, CreateSessionFromArray = 8, Run = 9,
    CreateSessionOptions = 10, SetOptimizedModelFilePath = 11, SetIntraOpNumThreads = 24, SessionGetInputCount = 30,
    SessionGetOutputCount = 31, SessionGetInputTypeInfo = 33, SessionGetInputName = 36, SessionGetOutputName = 37,
    CreateTensorWithDataAsOrtValue = 49, IsTensor = 50, GetTensorMutableData = 51, CastTypeInfoToTensorInfo = 55,
    GetTensorElementType = 60, GetDimensionsCount = 61, GetDimensions = 62, GetSymbolicDimensions = 63,
    GetTensorShapeElementCount = 64, GetTensorTypeAndShape = 65, CreateCpuMemoryInfo = 69, AllocatorFree = 76,
    GetAllocatorWithDefaultOptions = 78, ReleaseEnv = 92, ReleaseStatus = 93, ReleaseMemoryInfo = 94,
    ReleaseSession = 95, ReleaseValue = 96, ReleaseTypeInfo = 98, ReleaseTensorTypeAndShapeInfo = 99,
    ReleaseSessionOptions = 100, SessionGetModelMetadata = 111, ModelMetadataGetProducerName = 112,
    ModelMetadataLookupCustomMetadataMap = 116, ReleaseModelMetadata = 118
};

#define CALL(function, parameters) ((Status * (*)parameters) api[function])
#define FREE(function, value) ((void (*)(void *))api[function])(value)

/* Prints the code and text of an error, and frees it. */
static void said(Status *status) {
    int code = ((int (*)(Status *))api[GetErrorCode])(status);
    printf("error %d: %s\n", code, ((const char *(*)(Status *))api[GetErrorMessage])(status));
    FREE(ReleaseStatus, status);
}

static void check(Status *status) {
    if (status != NULL) {
        said(status);
        exit(1);
    }
}

int main(int count, char **arguments) {
    const Base *base = OrtGetApiBase();
    if (count != 3 || strncmp(base->version(), "1.", 2) != 0) return 2;
    printf("newer: %d\n", base->get_api(1000) != NULL);
    api = base->get_api((uint32_t)atoi(arguments[2]));
    if (api == NULL) return 3;

    void *env, *options, *session, *allocator, *memory;
    check(CALL(CreateEnv, (int, const char *, void **))(3, "program", &env));
    check(CALL(CreateSessionOptions, (void **))(&options));
    check(CALL(SetIntraOpNumThreads, (void *, int))(options, 1));
    check(CALL(GetAllocatorWithDefaultOptions, (void **))(&allocator));
    said(CALL(CreateSession, (void *, const char *, void *, void **))(env, "nowhere.onnx", options, &session));
    said(CALL(CreateSessionFromArray, (void *, const void *, size_t, void *, void **))(env, "no model", 8, options, &session));
    said(CALL(SetOptimizedModelFilePath, (void *, const char *))(options, "model.onnx"));
    said(CALL(CreateSession, (void *, const char *, void *, void **))(env, NULL, options, &session));
    check(CALL(CreateSession, (void *, const char *, void *, void **))(env, arguments[1], options, &session));
    FREE(ReleaseSessionOptions, options);

    size_t inputs, outputs, rank;
    check(CALL(SessionGetInputCount, (void *, size_t *))(session, &inputs));
    check(CALL(SessionGetOutputCount, (void *, size_t *))(session, &outputs));
    printf("inputs %zu, outputs %zu\n", inputs, outputs);
    char *input, *output, *text;
    check(CALL(SessionGetInputName, (void *, size_t, void *, char **))(session, 0, allocator, &input));
    check(CALL(SessionGetOutputName, (void *, size_t, void *, char **))(session, 0, allocator, &output));
    void *type;
    const void *tensor;
    int element;
    int64_t sizes[4];
    const char *symbols[4];
    check(CALL(SessionGetInputTypeInfo, (void *, size_t, void **))(session, 0, &type));
    check(CALL(CastTypeInfoToTensorInfo, (void *, const void **))(type, &tensor));
    check(CALL(GetTensorElementType, (const void *, int *))(tensor, &element));
    check(CALL(GetDimensionsCount, (const void *, size_t *))(tensor, &rank));
    check(CALL(GetDimensions, (const void *, int64_t *, size_t))(tensor, sizes, rank));
    check(CALL(GetSymbolicDimensions, (const void *, const char **, size_t))(tensor, symbols, rank));
    printf("%s to %s: type %d, %" PRId64 " (%s) x %" PRId64 "\n", input, output, element, sizes[0], symbols[0], sizes[1]);
    FREE(ReleaseTypeInfo, type);

    float elements[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {3, 2};
    void *fed, *given = NULL;
    check(CALL(CreateCpuMemoryInfo, (int, int, void **))(0, 0, &memory));
    check(CALL(CreateTensorWithDataAsOrtValue, (void *, void *, size_t, const int64_t *, size_t, int, void **))(
        memory, elements, sizeof elements, shape, 2, 1, &fed));
    said(CALL(CreateTensorWithDataAsOrtValue, (void *, void *, size_t, const int64_t *, size_t, int, void **))(
        memory, elements, 4, shape, 2, 1, &given));
    said(CALL(CreateTensorWithDataAsOrtValue, (void *, void *, size_t, const int64_t *, size_t, int, void **))(
        memory, elements, sizeof elements, shape, 2, 99, &given));
    FREE(ReleaseMemoryInfo, memory);
    const char *names[1] = {input}, *wanted[1] = {output}, *wrong[1] = {"nothing"};
#define RUN CALL(Run, (void *, void *, const char **, void **, size_t, const char **, size_t, void **))
    said(RUN(session, NULL, wrong, &fed, 1, wanted, 1, &given));
    said(RUN(session, NULL, names, &fed, 1, wrong, 1, &given));
    check(RUN(session, NULL, names, &fed, 1, wanted, 1, &given));
    int is_tensor;
    void *info;
    float *result;
    size_t total;
    check(CALL(IsTensor, (void *, int *))(given, &is_tensor));
    check(CALL(GetTensorTypeAndShape, (void *, void **))(given, &info));
    check(CALL(GetTensorShapeElementCount, (void *, size_t *))(info, &total));
    FREE(ReleaseTensorTypeAndShapeInfo, info);
    check(CALL(GetTensorMutableData, (void *, void **))(given, (void **)&result));
    printf("tensor %d:", is_tensor);
    for (size_t k = 0; k < total; k++) printf(" %g", result[k]);
    /* The program's own memory is read anew by the next run, which writes over the value that is there already. */
    elements[0] = 10;
    check(RUN(session, NULL, names, &fed, 1, wanted, 1, &given));
    check(CALL(GetTensorMutableData, (void *, void **))(given, (void **)&result));
    printf(", then %g\n", result[0]);
    FREE(ReleaseValue, given);
    FREE(ReleaseValue, fed);

    void *metadata;
    check(CALL(SessionGetModelMetadata, (void *, void **))(session, &metadata));
    check(CALL(ModelMetadataGetProducerName, (void *, void *, char **))(metadata, allocator, &text));
    printf("made by %s\n", text);
    check(CALL(AllocatorFree, (void *, void *))(allocator, text));
    check(CALL(ModelMetadataLookupCustomMetadataMap, (void *, void *, const char *, char **))(metadata, allocator, "x", &text));
    printf("no such key: %d\n", text == NULL);
    FREE(ReleaseModelMetadata, metadata);
    check(CALL(AllocatorFree, (void *, void *))(allocator, input));
    check(CALL(AllocatorFree, (void *, void *))(allocator, output));
    FREE(ReleaseSession, session);

    /* Types that came after INT4, of which several elements may share a byte. */
    check(CALL(CreateSessionOptions, (void **))(&options));
    check(CALL(CreateSession, (void *, const char *, void *, void **))(env, "later.onnx", options, &session));
    FREE(ReleaseSessionOptions, options);
    check(CALL(CreateCpuMemoryInfo, (int, int, void **))(0, 0, &memory));
    uint8_t small[4][3] = {{0x21, 0x03}, {0x1b}, {0x1b}, {1, 127, 255}};
    const char *from[4] = {"x23", "x24", "x25", "x26"}, *to[4] = {"y23", "y24", "y25", "y26"};
    void *feeds[4], *results[4] = {NULL, NULL, NULL, NULL};
    int64_t three[1] = {3};
    for (int k = 0; k < 4; k++)
        check(CALL(CreateTensorWithDataAsOrtValue, (void *, void *, size_t, const int64_t *, size_t, int, void **))(
            memory, small[k], 3, three, 1, 23 + k, &feeds[k]));
    FREE(ReleaseMemoryInfo, memory);
    check(RUN(session, NULL, from, feeds, 4, to, 4, results));
    for (int k = 0; k < 4; k++) {
        uint8_t *bytes;
        check(CALL(GetTensorTypeAndShape, (void *, void **))(results[k], &info));
        check(CALL(GetTensorElementType, (const void *, int *))(info, &element));
        FREE(ReleaseTensorTypeAndShapeInfo, info);
        check(CALL(GetTensorMutableData, (void *, void **))(results[k], (void **)&bytes));
        printf("type %d:", element);
        for (int at = 0; at < (k == 0 ? 2 : k == 3 ? 3 : 1); at++) printf(" %02x", bytes[at]);
        printf("\n");
        FREE(ReleaseValue, results[k]);
        FREE(ReleaseValue, feeds[k]);
    }
    FREE(ReleaseSession, session);
    FREE(ReleaseEnv, env);
    FREE(ReleaseEnv, NULL);
    return 0;
}
