//! The table of functions: those that are here, and those that say that they aren't.
#![allow(unsafe_code)]

use crate::failure::Failure;
use crate::{arenas, binding, environment, failure, memory, metadata, options, pairs, session, tensor, types};
use ort_sys::{OrtApi, OrtDeviceMemoryType, OrtHardwareDeviceType, OrtStatusPtr};

/// A function's pointer: one that does nothing but say that it isn't implemented, whatever its parameters are.
trait Entry {
    fn refusal<N: Name>() -> Self;
}

/// The name of a function.
trait Name {
    const NAME: &'static str;
}

/// What a function returns that isn't implemented.
trait Refused {
    fn refused(name: &'static str) -> Self;
}

impl Refused for OrtStatusPtr {
    fn refused(name: &'static str) -> OrtStatusPtr {
        Failure::missing("onnxref doesn't implement it").into_status(name)
    }
}

impl<T> Refused for *const T {
    fn refused(_: &'static str) -> *const T {
        std::ptr::null()
    }
}

impl<T> Refused for *mut T {
    fn refused(_: &'static str) -> *mut T {
        std::ptr::null_mut()
    }
}

macro_rules! refused {
    ($($type:ty: $value:expr),* $(,)?) => {$(
        impl Refused for $type {
            fn refused(_: &'static str) -> $type {
                $value
            }
        }
    )*};
}

refused! {
    (): (), bool: false, i64: 0, u32: 0, usize: 0,
    OrtDeviceMemoryType: OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT,
    OrtHardwareDeviceType: OrtHardwareDeviceType::OrtHardwareDeviceType_CPU,
}

macro_rules! arity {
    ($($parameter:ident)*) => {
        impl<R: Refused, $($parameter),*> Entry for unsafe extern "system" fn($($parameter),*) -> R {
            fn refusal<N: Name>() -> Self {
                #[allow(non_snake_case)]
                unsafe extern "system" fn refuse<N: Name, R: Refused, $($parameter),*>($(_: $parameter),*) -> R {
                    R::refused(N::NAME)
                }
                refuse::<N, R, $($parameter),*>
            }
        }
    };
}

arity!();
arity!(A);
arity!(A B);
arity!(A B C);
arity!(A B C D);
arity!(A B C D E);
arity!(A B C D E F);
arity!(A B C D E F G);
arity!(A B C D E F G H);
arity!(A B C D E F G H I);
arity!(A B C D E F G H I J);
arity!(A B C D E F G H I J K);
arity!(A B C D E F G H I J K L);

/// A function that takes numbers where the table has enumerations: both are 32 bits in C. A program may hand over a number
/// that this version doesn't know, and Rust has no such value of an enumeration.
///
/// # Safety
///
/// `F` is the type of a function with the same parameters but for that.
unsafe fn taking_numbers<F: Copy>(function: *const ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    // SAFETY: see above; both are pointers.
    unsafe { std::mem::transmute_copy(&function) }
}

macro_rules! table {
    (
        same { $($module:ident: { $($same:ident),* $(,)? })* }
        numbers { $($place:ident: { $($numbered:ident),* $(,)? })* }
        refused { $($refused:ident),* $(,)? }
    ) => {
        OrtApi {
            $($($same: $module::$same,)*)*
            // SAFETY: only the types of enumerations differ.
            $($($numbered: unsafe { taking_numbers($place::$numbered as *const ()) },)*)*
            $($refused: {
                struct Function;
                impl Name for Function {
                    const NAME: &'static str = stringify!($refused);
                }
                Entry::refusal::<Function>()
            },)*
            // What came after version 28.
            ..ort_sys::stub::api()
        }
    };
}

/// The functions of the API, as many as the crate `ort-sys` knows.
#[allow(clippy::needless_update)]
pub(crate) fn functions() -> OrtApi {
    table! {
        same {
            arenas: {
                CreateArenaCfg, CreateArenaCfgV2, ReleaseArenaCfg, CreateAndRegisterAllocator,
                CreateAndRegisterAllocatorV2, RegisterAllocator, UnregisterAllocator, GetSharedAllocator,
                AllocatorGetStats,
            }
            failure: {
                GetErrorCode, GetErrorMessage, ReleaseStatus,
            }
            environment: {
                EnableTelemetryEvents, DisableTelemetryEvents, ReleaseEnv, CreateThreadingOptions,
                ReleaseThreadingOptions, GetAvailableProviders, ReleaseAvailableProviders, SetGlobalIntraOpNumThreads,
                SetGlobalInterOpNumThreads, SetGlobalSpinControl, CreatePrepackedWeightsContainer,
                ReleasePrepackedWeightsContainer, SetGlobalIntraOpThreadAffinity, GetBuildInfoString,
            }
            session: {
                CreateSession, CreateSessionFromArray, Run, SessionGetInputCount, SessionGetOutputCount,
                SessionGetOverridableInitializerCount, SessionGetInputTypeInfo, SessionGetOutputTypeInfo,
                SessionGetOverridableInitializerTypeInfo, SessionGetInputName, SessionGetOutputName,
                SessionGetOverridableInitializerName, ReleaseSession, SessionGetModelMetadata,
                SessionGetMemoryInfoForInputs,
                SessionGetMemoryInfoForOutputs,
                CreateSessionWithPrepackedWeightsContainer, CreateSessionFromArrayWithPrepackedWeightsContainer,
                RunAsync,
            }
            options: {
                CreateSessionOptions, CloneSessionOptions, DisableProfiling, EnableMemPattern, DisableMemPattern,
                EnableCpuMemArena, DisableCpuMemArena, SetSessionLogId, SetSessionLogVerbosityLevel,
                SetSessionLogSeverityLevel, SetIntraOpNumThreads, SetInterOpNumThreads, CreateRunOptions,
                RunOptionsSetRunLogVerbosityLevel, RunOptionsSetRunLogSeverityLevel, RunOptionsSetRunTag,
                RunOptionsGetRunLogVerbosityLevel, RunOptionsGetRunLogSeverityLevel, RunOptionsGetRunTag,
                RunOptionsSetTerminate, RunOptionsUnsetTerminate, ReleaseRunOptions, ReleaseSessionOptions,
                DisablePerSessionThreads, AddFreeDimensionOverrideByName, AddSessionConfigEntry, AddRunConfigEntry,
                HasSessionConfigEntry, GetSessionConfigEntry, SetUserLoggingFunction, SetDeterministicCompute,
                AddExternalInitializersFromMemory, GetRunConfigEntry, RunOptionsDisableProfiling,
                GetMemPatternEnabled,
            }
            tensor: {
                IsTensor, GetTensorMutableData, FillStringTensor, GetStringTensorDataLength, GetStringTensorContent,
                GetTensorTypeAndShape, GetTypeInfo, GetValueType, GetValue, GetValueCount, ReleaseValue,
                GetStringTensorElementLength, GetStringTensorElement, FillStringTensorElement, TensorAt,
                IsSparseTensor, HasValue, GetTensorMemoryInfo, GetResizedStringTensorElementBuffer,
                GetTensorSizeInBytes, GetTensorData, CopyTensors,
            }
            types: {
                CastTypeInfoToTensorInfo, GetOnnxTypeFromTypeInfo, CreateTensorTypeAndShapeInfo, SetDimensions,
                GetDimensionsCount, GetDimensions, GetSymbolicDimensions,
                GetTensorShapeElementCount, ReleaseTypeInfo, ReleaseTensorTypeAndShapeInfo, GetDenotationFromTypeInfo,
                CastTypeInfoToMapTypeInfo, CastTypeInfoToSequenceTypeInfo, GetMapValueType,
                GetSequenceElementType, ReleaseMapTypeInfo, ReleaseSequenceTypeInfo, CastTypeInfoToOptionalTypeInfo,
                GetOptionalContainedTypeInfo, SetSymbolicDimensions, TensorTypeAndShape_HasShape,
            }
            memory: {
                CompareMemoryInfo, MemoryInfoGetName, MemoryInfoGetId, MemoryInfoGetMemType, MemoryInfoGetType,
                AllocatorAlloc, AllocatorFree, AllocatorGetInfo, GetAllocatorWithDefaultOptions, ReleaseMemoryInfo,
                CreateAllocator, ReleaseAllocator, MemoryInfoGetDeviceType, MemoryInfoGetDeviceMemType,
                MemoryInfoGetVendorId,
            }
            metadata: {
                ModelMetadataGetProducerName, ModelMetadataGetGraphName, ModelMetadataGetDomain,
                ModelMetadataGetDescription, ModelMetadataLookupCustomMetadataMap, ModelMetadataGetVersion,
                ReleaseModelMetadata, ModelMetadataGetCustomMetadataMapKeys, ModelMetadataGetGraphDescription,
            }
            binding: {
                RunWithBinding, CreateIoBinding, ReleaseIoBinding, BindInput, BindOutput, BindOutputToDevice,
                GetBoundOutputNames, GetBoundOutputValues, ClearBoundInputs, ClearBoundOutputs,
                SynchronizeBoundInputs, SynchronizeBoundOutputs,
            }
            pairs: {
                CreateKeyValuePairs, AddKeyValuePair, GetKeyValue, GetKeyValuePairs, RemoveKeyValuePair,
                ReleaseKeyValuePairs,
                GetSessionOptionsConfigEntries,
            }
        }
        numbers {
            arenas: {
                CreateMemoryInfo_V2,
            }
            failure: {
                CreateStatus,
            }
            environment: {
                CreateEnv, CreateEnvWithCustomLogger, CreateEnvWithGlobalThreadPools, SetLanguageProjection,
                CreateEnvWithCustomLoggerAndGlobalThreadPools, UpdateEnvWithCustomLogLevel,
            }
            options: {
                SetSessionExecutionMode, SetSessionGraphOptimizationLevel, GetSessionExecutionMode,
            }
            tensor: {
                CreateTensorAsOrtValue, CreateTensorWithDataAsOrtValue, CreateValue,
                CreateTensorWithDataAndDeleterAsOrtValue, GetTensorElementTypeAndShapeDataReference,
            }
            types: {
                SetTensorElementType, GetTensorElementType, GetMapKeyType,
            }
            memory: {
                CreateMemoryInfo, CreateCpuMemoryInfo,
            }
        }
        refused {
            SetOptimizedModelFilePath, EnableProfiling, CreateCustomOpDomain, CustomOpDomain_Add, AddCustomOpDomain,
            RegisterCustomOpsLibrary, AddFreeDimensionOverride, CreateOpaqueValue, GetOpaqueValue,
            KernelInfoGetAttribute_float, KernelInfoGetAttribute_int64, KernelInfoGetAttribute_string,
            KernelContext_GetInputCount, KernelContext_GetOutputCount, KernelContext_GetInput,
            KernelContext_GetOutput, ReleaseCustomOpDomain, SessionEndProfiling, SessionGetProfilingStartTimeNs,
            AddInitializer, SessionOptionsAppendExecutionProvider_CUDA,
            SessionOptionsAppendExecutionProvider_ROCM, SessionOptionsAppendExecutionProvider_OpenVINO,
            SetGlobalDenormalAsZero, SessionOptionsAppendExecutionProvider_TensorRT,
            SetCurrentGpuDeviceId, GetCurrentGpuDeviceId, KernelInfoGetAttributeArray_float,
            KernelInfoGetAttributeArray_int64, SessionOptionsAppendExecutionProvider_TensorRT_V2,
            CreateTensorRTProviderOptions, UpdateTensorRTProviderOptions, GetTensorRTProviderOptionsAsString,
            ReleaseTensorRTProviderOptions, EnableOrtCustomOps, CreateSparseTensorAsOrtValue, FillSparseTensorCoo,
            FillSparseTensorCsr, FillSparseTensorBlockSparse,
            CreateSparseTensorWithValuesAsOrtValue, UseCooIndices, UseCsrIndices, UseBlockSparseIndices,
            GetSparseTensorFormat, GetSparseTensorValuesTypeAndShape, GetSparseTensorValues,
            GetSparseTensorIndicesTypeShape, GetSparseTensorIndices, KernelContext_GetGPUComputeStream,
            GetExecutionProviderApi, SessionOptionsSetCustomCreateThreadFn,
            SessionOptionsSetCustomThreadCreationOptions, SessionOptionsSetCustomJoinThreadFn,
            SetGlobalCustomCreateThreadFn, SetGlobalCustomThreadCreationOptions, SetGlobalCustomJoinThreadFn,
            SessionOptionsAppendExecutionProvider_CUDA_V2, CreateCUDAProviderOptions, UpdateCUDAProviderOptions,
            GetCUDAProviderOptionsAsString, ReleaseCUDAProviderOptions,
            SessionOptionsAppendExecutionProvider_MIGraphX, AddExternalInitializers, CreateOpAttr, ReleaseOpAttr,
            CreateOp, InvokeOp, ReleaseOp, SessionOptionsAppendExecutionProvider, CopyKernelInfo, ReleaseKernelInfo,
            GetTrainingApi, SessionOptionsAppendExecutionProvider_CANN, CreateCANNProviderOptions,
            UpdateCANNProviderOptions, GetCANNProviderOptionsAsString, ReleaseCANNProviderOptions,
            RegisterCustomOpsLibrary_V2, RegisterCustomOpsUsingFunction, KernelInfo_GetInputCount,
            KernelInfo_GetOutputCount, KernelInfo_GetInputName, KernelInfo_GetOutputName, KernelInfo_GetInputTypeInfo,
            KernelInfo_GetOutputTypeInfo, KernelInfoGetAttribute_tensor, SessionOptionsAppendExecutionProvider_Dnnl,
            CreateDnnlProviderOptions, UpdateDnnlProviderOptions, GetDnnlProviderOptionsAsString,
            ReleaseDnnlProviderOptions, KernelInfo_GetNodeName, KernelInfo_GetLogger, KernelContext_GetLogger,
            Logger_LogMessage, Logger_GetLoggingSeverityLevel, KernelInfoGetConstantInput_tensor,
            KernelContext_GetAllocator, CreateROCMProviderOptions, UpdateROCMProviderOptions,
            GetROCMProviderOptionsAsString, ReleaseROCMProviderOptions, UpdateTensorRTProviderOptionsWithValue,
            GetTensorRTProviderOptionsByName,
            UpdateCUDAProviderOptionsWithValue, GetCUDAProviderOptionsByName, KernelContext_GetResource,
            ShapeInferContext_GetInputCount, ShapeInferContext_GetInputTypeShape, ShapeInferContext_GetAttribute,
            ShapeInferContext_SetOutputTypeShape, ReadOpAttr, KernelContext_ParallelFor,
            SessionOptionsAppendExecutionProvider_OpenVINO_V2, SessionOptionsAppendExecutionProvider_VitisAI,
            KernelContext_GetScratchBuffer, KernelInfoGetAllocator, CreateLoraAdapter, CreateLoraAdapterFromArray,
            ReleaseLoraAdapter, RunOptionsAddActiveLoraAdapter, SetEpDynamicOptions, ReleaseValueInfo, ReleaseNode,
            ReleaseGraph, ReleaseModel, GetValueInfoName, GetValueInfoTypeInfo, GetModelEditorApi,
            SessionOptionsSetLoadCancellationFlag, GetCompileApi,
            RegisterExecutionProviderLibrary, UnregisterExecutionProviderLibrary, GetEpDevices,
            SessionOptionsAppendExecutionProvider_V2, SessionOptionsSetEpSelectionPolicy,
            SessionOptionsSetEpSelectionPolicyDelegate, HardwareDevice_Type, HardwareDevice_VendorId,
            HardwareDevice_Vendor, HardwareDevice_DeviceId, HardwareDevice_Metadata, EpDevice_EpName,
            EpDevice_EpVendor, EpDevice_EpMetadata, EpDevice_EpOptions, EpDevice_Device, GetEpApi,
            ValueInfo_GetValueProducer, ValueInfo_GetValueNumConsumers,
            ValueInfo_GetValueConsumers, ValueInfo_GetInitializerValue, ValueInfo_GetExternalInitializerInfo,
            ValueInfo_IsRequiredGraphInput, ValueInfo_IsOptionalGraphInput, ValueInfo_IsGraphOutput,
            ValueInfo_IsConstantInitializer, ValueInfo_IsFromOuterScope, Graph_GetName, Graph_GetModelPath,
            Graph_GetOnnxIRVersion, Graph_GetNumOperatorSets, Graph_GetOperatorSets, Graph_GetNumInputs,
            Graph_GetInputs, Graph_GetNumOutputs, Graph_GetOutputs, Graph_GetNumInitializers, Graph_GetInitializers,
            Graph_GetNumNodes, Graph_GetNodes, Graph_GetParentNode, Graph_GetGraphView, Node_GetId, Node_GetName,
            Node_GetOperatorType, Node_GetDomain, Node_GetSinceVersion, Node_GetNumInputs, Node_GetInputs,
            Node_GetNumOutputs, Node_GetOutputs, Node_GetNumImplicitInputs, Node_GetImplicitInputs,
            Node_GetNumAttributes, Node_GetAttributes, Node_GetAttributeByName, OpAttr_GetTensorAttributeAsOrtValue,
            OpAttr_GetType, OpAttr_GetName, Node_GetNumSubgraphs, Node_GetSubgraphs, Node_GetGraph, Node_GetEpName,
            ReleaseExternalInitializerInfo, ExternalInitializerInfo_GetFilePath,
            ExternalInitializerInfo_GetFileOffset, ExternalInitializerInfo_GetByteSize, EpDevice_MemoryInfo,
            CreateSharedAllocator, ReleaseSharedAllocator, SessionGetEpDeviceForInputs,
            CreateSyncStreamForEpDevice, SyncStream_GetHandle, ReleaseSyncStream, Graph_GetModelMetadata,
            GetModelCompatibilityForEpDevices, CreateExternalInitializerInfo, KernelInfo_GetConfigEntries,
            KernelInfo_GetOperatorDomain, KernelInfo_GetOperatorType, KernelInfo_GetOperatorSinceVersion,
            GetInteropApi, SessionGetEpDeviceForOutputs, GetNumHardwareDevices, GetHardwareDevices,
            GetHardwareDeviceEpIncompatibilityDetails, DeviceEpIncompatibilityDetails_GetReasonsBitmask,
            DeviceEpIncompatibilityDetails_GetNotes, DeviceEpIncompatibilityDetails_GetErrorCode,
            ReleaseDeviceEpIncompatibilityDetails, GetCompatibilityInfoFromModel, GetCompatibilityInfoFromModelBytes,
            CreateEnvWithOptions, Session_GetEpGraphAssignmentInfo, EpAssignedSubgraph_GetEpName,
            EpAssignedSubgraph_GetNodes, EpAssignedNode_GetName, EpAssignedNode_GetDomain,
            EpAssignedNode_GetOperatorType, RunOptionsSetSyncStream, RunOptionsEnableProfiling,
            KernelInfoGetAttributeArray_string, SetPerSessionThreadPoolCallbacks, SessionReleaseCapturedGraph,
            GetExperimentalFunction, KernelContext_GetSyncStream,
        }
    }
}
