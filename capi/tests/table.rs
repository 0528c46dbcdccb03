//! The table of functions as a program sees it that makes mistakes.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use onnxref_capi::{OrtGetApiBase, OrtSessionOptionsAppendExecutionProvider_CPU, VERSION, api};
use ort_sys::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

/// Code and text of an error, which is freed.
fn said(status: OrtStatusPtr) -> (OrtErrorCode, String) {
    let api = api();
    assert!(!status.0.is_null(), "no error");
    unsafe {
        let text = CStr::from_ptr((api.GetErrorMessage)(status.0)).to_str().unwrap().to_string();
        let code = (api.GetErrorCode)(status.0);
        (api.ReleaseStatus)(status.0);
        (code, text)
    }
}

fn fine(status: OrtStatusPtr) {
    if !status.0.is_null() {
        panic!("{:?}", said(status));
    }
}

/// What a function makes.
fn made<T>(make: impl FnOnce(*mut *mut T) -> OrtStatusPtr) -> *mut T {
    let mut made = null_mut();
    fine(make(&raw mut made));
    assert!(!made.is_null());
    made
}

#[test]
fn no_function_is_missing() {
    let api = api();
    let words = size_of::<OrtApi>() / size_of::<usize>();
    let table = unsafe { std::slice::from_raw_parts((&raw const api).cast::<usize>(), words) };
    assert!(table.len() >= 424, "{}", table.len());
    assert_eq!(table.iter().position(|function| *function == 0), None);
}

#[test]
fn versions() {
    unsafe {
        let base = &*OrtGetApiBase();
        assert!((base.GetApi)(VERSION + 1).is_null());
        assert!((base.GetApi)(u32::MAX).is_null());
        let (newest, old) = ((base.GetApi)(VERSION), (base.GetApi)(1));
        assert!(!newest.is_null() && newest == old);
        let text = CStr::from_ptr((base.GetVersionString)()).to_str().unwrap();
        assert_eq!(text, format!("1.{VERSION}.0+onnxref-{}", env!("CARGO_PKG_VERSION")));
        let mut names = null_mut();
        let mut count = 0;
        fine((api().GetAvailableProviders)(&raw mut names, &raw mut count));
        assert_eq!((count, CStr::from_ptr(*names)), (1, c"CPUExecutionProvider"));
        fine((api().ReleaseAvailableProviders)(names, count));
    }
}

#[test]
fn what_is_not_implemented_says_so() {
    let api = api();
    let missing = |name: &str| (OrtErrorCode::ORT_NOT_IMPLEMENTED, format!("{name}: onnxref doesn't implement it"));
    unsafe {
        assert_eq!(said((api.EnableOrtCustomOps)(null_mut())), missing("EnableOrtCustomOps"));
        assert_eq!(
            said((api.CreateOpAttr)(null(), null(), 0, OrtOpAttrType::ORT_OP_ATTR_INT, null_mut())),
            missing("CreateOpAttr")
        );
        let many = (api.CreateOp)(null(), null(), null(), 0, null_mut(), null(), 0, null(), 0, 0, 0, null_mut());
        assert_eq!(said(many), missing("CreateOp"));
        assert_eq!(said((api.CreateLoraAdapter)(null(), null_mut(), null_mut())), missing("CreateLoraAdapter"));
        // Those that return something else.
        assert!((api.GetTrainingApi)(VERSION).is_null());
        assert!((api.GetModelEditorApi)().is_null());
        assert!((api.EpDevice_EpName)(null()).is_null());
        assert_eq!((api.HardwareDevice_VendorId)(null()), 0);
        (api.ReleaseOp)(null_mut());
        (api.ReleaseKernelInfo)(null_mut());
    }
}

#[test]
fn null_is_refused() {
    let api = api();
    let null_argument = |function: &str, argument: &str| {
        (OrtErrorCode::ORT_INVALID_ARGUMENT, format!("{function}: the argument {argument} is null"))
    };
    unsafe {
        let options = made(|out| (api.CreateSessionOptions)(out));
        let env = made(|out| (api.CreateEnv)(OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR, null(), out));
        assert_eq!(said((api.CreateSessionOptions)(null_mut())), null_argument("CreateSessionOptions", "out"));
        assert_eq!(said((api.SetIntraOpNumThreads)(null_mut(), 1)), null_argument("SetIntraOpNumThreads", "options"));
        let mut session = null_mut();
        let made = (api.CreateSession)(null(), c"x".as_ptr().cast(), options, &raw mut session);
        assert_eq!(said(made), null_argument("CreateSession", "env"));
        let made = (api.CreateSessionFromArray)(env, null(), 7, options, &raw mut session);
        assert_eq!(said(made), null_argument("CreateSessionFromArray", "data"));
        let made = (api.CreateSessionFromArray)(env, null(), 0, null(), &raw mut session);
        assert_eq!(said(made), (OrtErrorCode::ORT_INVALID_GRAPH, "the model file is empty".to_string()));
        assert!(session.is_null());
        let mut count = 0;
        assert_eq!(
            said((api.SessionGetInputCount)(null(), &raw mut count)),
            null_argument("SessionGetInputCount", "session")
        );
        let run = (api.Run)(null_mut(), null(), null(), null(), 0, null(), 0, null_mut());
        assert_eq!(said(run), null_argument("Run", "session"));
        assert_eq!(
            said((api.AddSessionConfigEntry)(options, c"key".as_ptr(), null())),
            null_argument("AddSessionConfigEntry", "value")
        );
        let latin = [0xe9u8, 0].as_ptr().cast::<c_char>();
        assert_eq!(
            said((api.AddSessionConfigEntry)(options, latin, c"".as_ptr())),
            (
                OrtErrorCode::ORT_INVALID_ARGUMENT,
                "AddSessionConfigEntry: the argument key is not UTF-8: \"\u{fffd}\"".to_string()
            )
        );
        assert_eq!((api.GetErrorCode)(null()), OrtErrorCode::ORT_OK);
        assert_eq!(CStr::from_ptr((api.GetErrorMessage)(null())), c"");
        assert_eq!(said((api.CreateStatus)(OrtErrorCode::ORT_FAIL, null())), (OrtErrorCode::ORT_FAIL, String::new()));
        fine(OrtSessionOptionsAppendExecutionProvider_CPU(options, 1));
        // Nothing to free.
        (api.ReleaseStatus)(null_mut());
        (api.ReleaseEnv)(null_mut());
        (api.ReleaseSession)(null_mut());
        (api.ReleaseValue)(null_mut());
        (api.ReleaseTypeInfo)(null_mut());
        (api.ReleaseIoBinding)(null_mut());
        (api.ClearBoundInputs)(null_mut());
        let allocator = self::made(|out| (api.GetAllocatorWithDefaultOptions)(out));
        fine((api.AllocatorFree)(allocator, null_mut()));
        (api.ReleaseSessionOptions)(options);
        (api.ReleaseEnv)(env);
    }
}

/// Numbers of enumerations that a newer program may use.
#[test]
fn unknown_numbers() {
    type CreateTensor =
        unsafe extern "system" fn(*mut OrtAllocator, *const i64, usize, i32, *mut *mut OrtValue) -> OrtStatusPtr;
    type CreateInfo = unsafe extern "system" fn(*const c_char, i32, i32, i32, *mut *mut OrtMemoryInfo) -> OrtStatusPtr;
    type CreateStatus = unsafe extern "system" fn(i32, *const c_char) -> OrtStatusPtr;
    let api = api();
    unsafe {
        let create_tensor: CreateTensor = std::mem::transmute(api.CreateTensorAsOrtValue);
        let create_info: CreateInfo = std::mem::transmute(api.CreateMemoryInfo);
        let create_status: CreateStatus = std::mem::transmute(api.CreateStatus);
        let allocator = made(|out| (api.GetAllocatorWithDefaultOptions)(out));
        let mut value = null_mut();
        for number in [-1, 0, 23, 26, i32::MAX] {
            let text =
                format!("CreateTensorAsOrtValue: {number} is not an element type of version {VERSION} of the API");
            let made = create_tensor(allocator, [1i64].as_ptr(), 1, number, &raw mut value);
            assert_eq!(said(made), (OrtErrorCode::ORT_NOT_IMPLEMENTED, text));
        }
        let made = create_tensor(allocator, [i64::MAX, 2].as_ptr(), 2, 1, &raw mut value);
        assert_eq!(said(made).0, OrtErrorCode::ORT_INVALID_ARGUMENT);
        let made = create_tensor(allocator, [i64::MAX / 64].as_ptr(), 1, 1, &raw mut value);
        assert_eq!(said(made).0, OrtErrorCode::ORT_FAIL);
        let made = create_tensor(allocator, [-1i64].as_ptr(), 1, 1, &raw mut value);
        assert_eq!(said(made).1, "CreateTensorAsOrtValue: a tensor can't have the shape [-1]");
        let mut info = null_mut();
        assert_eq!(
            said(create_info(c"Cpu".as_ptr(), 77, 0, 0, &raw mut info)).1,
            "CreateMemoryInfo: unknown OrtAllocatorType"
        );
        assert_eq!(
            said(create_info(c"Cuda".as_ptr(), 0, 0, 0, &raw mut info)),
            (
                OrtErrorCode::ORT_NOT_IMPLEMENTED,
                "CreateMemoryInfo: there is no memory \"Cuda\": onnxref computes on the CPU, in \"Cpu\"".to_string()
            )
        );
        assert_eq!(said(create_status(400, c"odd".as_ptr())), (OrtErrorCode::ORT_FAIL, "odd".to_string()));
    }
}

/// What changes speed and memory only is accepted.
#[test]
fn arenas_and_allocators() {
    let api = api();
    unsafe {
        let env = made(|out| (api.CreateEnv)(OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR, null(), out));
        let info = made(|out| {
            (api.CreateCpuMemoryInfo)(OrtAllocatorType::OrtArenaAllocator, OrtMemType::OrtMemTypeDefault, out)
        });
        let arena = made(|out| (api.CreateArenaCfg)(1 << 20, -1, -1, -1, out));
        fine((api.CreateAndRegisterAllocator)(env, info, arena));
        (api.ReleaseArenaCfg)(arena);
        let (keys, values) = ([c"max_mem".as_ptr(), c"size".as_ptr()], [7usize, 7]);
        let arena = made(|out| (api.CreateArenaCfgV2)(keys.as_ptr(), values.as_ptr(), 1, out));
        fine((api.CreateAndRegisterAllocatorV2)(env, c"CPUExecutionProvider".as_ptr(), info, arena, null(), null(), 0));
        let other = (api.CreateAndRegisterAllocatorV2)(env, c"Cuda".as_ptr(), info, arena, null(), null(), 0);
        assert_eq!(
            said(other),
            (
                OrtErrorCode::ORT_NOT_IMPLEMENTED,
                "CreateAndRegisterAllocatorV2: there is no \"Cuda\": onnxref has CPUExecutionProvider only".to_string()
            )
        );
        (api.ReleaseArenaCfg)(arena);
        let mut none = null_mut();
        let text = said((api.CreateArenaCfgV2)(keys.as_ptr(), values.as_ptr(), 2, &raw mut none)).1;
        assert!(text.starts_with("CreateArenaCfgV2: an arena has no \"size\": it has max_mem, arena_extend"), "{text}");
        let shared = made(|out| (api.GetSharedAllocator)(env, info, out));
        fine((api.RegisterAllocator)(env, shared));
        fine((api.UnregisterAllocator)(env, info));
        let pairs = made(|out| (api.AllocatorGetStats)(shared, out));
        let (mut names, mut texts, mut count) = (null(), null(), 9);
        (api.GetKeyValuePairs)(pairs, &raw mut names, &raw mut texts, &raw mut count);
        assert_eq!(count, 0);
        (api.ReleaseKeyValuePairs)(pairs);
        let device = |device: OrtMemoryInfoDeviceType, out| {
            let usual = (OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT, OrtAllocatorType::OrtDeviceAllocator);
            (api.CreateMemoryInfo_V2)(c"Mine".as_ptr(), device, 0, 3, usual.0, 0, usual.1, out)
        };
        let mine = made(|out| device(OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU, out));
        let (mut name, mut id) = (null(), 0);
        fine((api.MemoryInfoGetName)(mine, &raw mut name));
        fine((api.MemoryInfoGetId)(mine, &raw mut id));
        assert_eq!((CStr::from_ptr(name), id, (api.MemoryInfoGetVendorId)(mine)), (c"Mine", 3, 0));
        let mut other = null_mut();
        assert_eq!(
            said(device(OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU, &raw mut other)).1,
            "CreateMemoryInfo_V2: there is no device of type 1: onnxref computes on the CPU, type 0"
        );
        (api.ReleaseMemoryInfo)(mine);
        (api.ReleaseMemoryInfo)(info);
        let options = made(|out| (api.CreateSessionOptions)(out));
        let mut mode = ExecutionMode::ORT_PARALLEL;
        fine((api.GetSessionExecutionMode)(options, &raw mut mode));
        assert_eq!(mode, ExecutionMode::ORT_SEQUENTIAL);
        fine((api.SetSessionExecutionMode)(options, ExecutionMode::ORT_PARALLEL));
        fine((api.GetSessionExecutionMode)(options, &raw mut mode));
        assert_eq!(mode, ExecutionMode::ORT_PARALLEL);
        refuses_numbers(&api, options);
        fine((api.GetSessionExecutionMode)(options, &raw mut mode));
        assert_eq!(mode, ExecutionMode::ORT_PARALLEL);
        (api.ReleaseSessionOptions)(options);
        (api.ReleaseEnv)(env);
    }
}

/// Numbers that the API has no name for, as programs in C may pass them.
unsafe fn refuses_numbers(api: &OrtApi, options: *mut OrtSessionOptions) {
    type Set<T> = unsafe extern "system" fn(*mut T, i32) -> OrtStatusPtr;
    unsafe {
        let mode: Set<OrtSessionOptions> = std::mem::transmute(api.SetSessionExecutionMode);
        let level: Set<OrtSessionOptions> = std::mem::transmute(api.SetSessionGraphOptimizationLevel);
        let severities = "severity of messages: allowed -1, 0, 1, 2, 3, 4";
        let text = |number, text: &str| (OrtErrorCode::ORT_INVALID_ARGUMENT, format!("{number} is not a{text}"));
        let within = |function: &str, (code, text): (OrtErrorCode, String)| (code, format!("{function}: {text}"));
        let wrong = text(7, "n execution mode: allowed 0, 1");
        assert_eq!(said(mode(options, 7)), within("SetSessionExecutionMode", wrong));
        let wrong = text(-5, " level of optimization: allowed 0, 1, 2, 3, 99");
        assert_eq!(said(level(options, -5)), within("SetSessionGraphOptimizationLevel", wrong));
        fine(level(options, 99));
        let wrong = text(99, &format!(" {severities}"));
        assert_eq!(said((api.SetSessionLogSeverityLevel)(options, 99)), within("SetSessionLogSeverityLevel", wrong));
        fine((api.SetSessionLogSeverityLevel)(options, -1));
        let run = made(|out| (api.CreateRunOptions)(out));
        let wrong = text(-2, &format!(" {severities}"));
        assert_eq!(
            said((api.RunOptionsSetRunLogSeverityLevel)(run, -2)),
            within("RunOptionsSetRunLogSeverityLevel", wrong)
        );
        fine((api.RunOptionsSetRunLogSeverityLevel)(run, 4));
        let wrong = "the key of a config entry has 1 to 1024 bytes, not 0";
        assert_eq!(
            said((api.AddRunConfigEntry)(run, c"".as_ptr(), c"1".as_ptr())).1,
            format!("AddRunConfigEntry: {wrong}")
        );
        assert_eq!(
            said((api.AddSessionConfigEntry)(options, c"".as_ptr(), c"1".as_ptr())).1,
            format!("AddSessionConfigEntry: {wrong}")
        );
        (api.ReleaseRunOptions)(run);
    }
}

/// The program's own memory, which the value frees, and copies of tensors.
#[test]
fn memory_that_values_free() {
    /// An allocator that counts what it frees.
    #[repr(C)]
    struct Counting {
        functions: OrtAllocator,
        freed: usize,
    }
    unsafe extern "system" fn free(this: *mut OrtAllocator, _: *mut c_void) {
        unsafe { (*this.cast::<Counting>()).freed += 1 }
    }
    let functions = OrtAllocator { version: 22, Alloc: None, Free: Some(free), Info: None, Reserve: None };
    let mut counting = Counting { functions, freed: 0 };
    let at = (&raw mut counting).cast::<OrtAllocator>();
    let (mut data, api) = ([1f32, 2.0], api());
    let float = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    let with = |bytes: usize, data: *mut f32, out| unsafe {
        (api.CreateTensorWithDataAndDeleterAsOrtValue)(at, data.cast(), bytes, [2i64].as_ptr(), 1, float, out)
    };
    unsafe {
        let value = made(|out| with(8, data.as_mut_ptr(), out));
        let allocator = made(|out| (api.GetAllocatorWithDefaultOptions)(out));
        let copy = made(|out| (api.CreateTensorAsOrtValue)(allocator, [2i64].as_ptr(), 1, float, out));
        let env = made(|out| (api.CreateEnv)(OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR, null(), out));
        let (from, mut to) = ([value.cast_const()], [copy.cast_const()]);
        fine((api.CopyTensors)(env, from.as_ptr(), to.as_mut_ptr(), null_mut(), 1));
        let mut place = null_mut();
        fine((api.GetTensorMutableData)(copy, &raw mut place));
        assert_eq!(place.cast::<[f32; 2]>().read(), [1.0, 2.0]);
        let other = made(|out| (api.CreateTensorAsOrtValue)(allocator, [3i64].as_ptr(), 1, float, out));
        let text = said((api.CopyTensors)(env, from.as_ptr(), [other.cast_const()].as_mut_ptr(), null_mut(), 1)).1;
        assert_eq!(
            text,
            "CopyTensors: what is copied is a tensor of float32 of shape [2], but the value for it is a tensor of float32 \
             of shape [3]"
        );
        assert_eq!((*at.cast::<Counting>()).freed, 0);
        (api.ReleaseValue)(value);
        assert_eq!((*at.cast::<Counting>()).freed, 1);
        let mut none = null_mut();
        assert_eq!(
            said(with(4, data.as_mut_ptr(), &raw mut none)).1,
            "CreateTensorWithDataAndDeleterAsOrtValue: a tensor of float32 of shape [2] takes 8 bytes, not 4"
        );
        // What isn't made leaves the program its memory.
        assert_eq!((*at.cast::<Counting>()).freed, 1);
        (api.ReleaseValue)(copy);
        (api.ReleaseValue)(other);
        (api.ReleaseEnv)(env);
    }
}

#[test]
fn strings_one_by_one() {
    let api = api();
    let string = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    unsafe {
        let allocator = made(|out| (api.GetAllocatorWithDefaultOptions)(out));
        let value = made(|out| (api.CreateTensorAsOrtValue)(allocator, [2i64].as_ptr(), 1, string, out));
        fine((api.FillStringTensorElement)(value, c"first".as_ptr(), 0));
        let mut buffer = null_mut();
        fine((api.GetResizedStringTensorElementBuffer)(value, 1, 2, &raw mut buffer));
        buffer.cast::<[u8; 2]>().write(*b"2.");
        assert_eq!(
            said((api.FillStringTensorElement)(value, c"third".as_ptr(), 2)).1,
            "FillStringTensorElement: there is no string 2 in a tensor of string of shape [2]"
        );
        let texts = [c"one".as_ptr(); 3];
        assert_eq!(
            said((api.FillStringTensor)(value, texts.as_ptr(), 3)).1,
            "FillStringTensor: a tensor of string of shape [2] takes 2 strings, not 3"
        );
        let mut len = 0;
        fine((api.GetStringTensorDataLength)(value, &raw mut len));
        assert_eq!(len, 7);
        let (mut text, mut starts) = ([0u8; 7], [9usize; 2]);
        fine((api.GetStringTensorContent)(value, text.as_mut_ptr().cast(), 7, starts.as_mut_ptr(), 2));
        assert_eq!((&text, starts), (b"first2.", [0, 5]));
        assert_eq!(
            said((api.GetStringTensorContent)(value, text.as_mut_ptr().cast(), 6, starts.as_mut_ptr(), 2)).1,
            "GetStringTensorContent: 2 strings of 7 bytes don't fit 6 bytes and 2 offsets"
        );
        fine((api.GetStringTensorElementLength)(value, 1, &raw mut len));
        assert_eq!(len, 2);
        fine((api.GetStringTensorElement)(value, 2, 1, text.as_mut_ptr().cast()));
        assert_eq!(&text[..2], b"2.");
        let mut data = null_mut();
        assert_eq!(
            said((api.GetTensorMutableData)(value, &raw mut data)).1,
            "GetTensorMutableData: a tensor of string of shape [2] has no elements in memory"
        );
        (api.ReleaseValue)(value);
    }
}

/// Parts of values and types belong to the program, whatever is freed first.
#[test]
fn what_outlives_what() {
    let api = api();
    let float = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    unsafe {
        let allocator = made(|out| (api.GetAllocatorWithDefaultOptions)(out));
        let tensor = made(|out| (api.CreateTensorAsOrtValue)(allocator, [2i64, 3].as_ptr(), 2, float, out));
        let mut element: *mut c_void = null_mut();
        fine((api.TensorAt)(tensor, [1i64, 2].as_ptr(), 2, &raw mut element));
        element.cast::<f32>().write(7.0);
        let mut outside = null_mut();
        assert_eq!(
            said((api.TensorAt)(tensor, [2i64, 0].as_ptr(), 2, &raw mut outside)).1,
            "TensorAt: there is no element [2, 0] in a tensor of float32 of shape [2, 3]"
        );
        let list = made(|out| (api.CreateValue)([tensor.cast_const()].as_ptr(), 1, ONNXType::ONNX_TYPE_SEQUENCE, out));
        (api.ReleaseValue)(tensor);
        let part = made(|out| (api.GetValue)(list, 0, allocator, out));
        let mut nothing = null_mut();
        assert_eq!(said((api.GetValue)(list, 1, allocator, &raw mut nothing)).1, "GetValue: there is no value 1 of 1");
        assert_eq!(
            said((api.GetValue)(list, -1, allocator, &raw mut nothing)).1,
            "GetValue: there is no value -1 of 1"
        );
        let info = made(|out| (api.GetTypeInfo)(list, out));
        (api.ReleaseValue)(list);
        let mut data: *mut c_void = null_mut();
        fine((api.GetTensorMutableData)(part, &raw mut data));
        assert_eq!(std::slice::from_raw_parts(data.cast::<f32>(), 6), [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
        (api.ReleaseValue)(part);
        let mut sequence = null();
        fine((api.CastTypeInfoToSequenceTypeInfo)(info, &raw mut sequence));
        let held = made(|out| (api.GetSequenceElementType)(sequence, out));
        let mut map = null();
        fine((api.CastTypeInfoToMapTypeInfo)(info, &raw mut map));
        assert!(map.is_null());
        // These belong to `info`.
        (api.ReleaseSequenceTypeInfo)(sequence.cast_mut());
        (api.ReleaseTypeInfo)(info);
        let mut kind = ONNXType::ONNX_TYPE_UNKNOWN;
        fine((api.GetOnnxTypeFromTypeInfo)(held, &raw mut kind));
        assert_eq!(kind, ONNXType::ONNX_TYPE_TENSOR);
        (api.ReleaseTypeInfo)(held);
        assert_eq!(
            said((api.CreateValue)(null(), 0, ONNXType::ONNX_TYPE_SEQUENCE, &raw mut nothing)).1,
            "CreateValue: a sequence is made of at least one value"
        );
        // The allocator, as a program calls it without the table.
        let place = (*allocator).Alloc.unwrap()(allocator, 100);
        assert_eq!(place.addr() % 64, 0);
        place.cast::<[u8; 100]>().write([1; 100]);
        (*allocator).Free.unwrap()(allocator, place);
        assert!((*allocator).Alloc.unwrap()(allocator, usize::MAX).is_null());
    }
}

#[test]
fn entries_of_options() {
    let api = api();
    unsafe {
        let options = made(|out| (api.CreateSessionOptions)(out));
        fine((api.AddSessionConfigEntry)(options, c"session.intra_op.allow_spinning".as_ptr(), c"0".as_ptr()));
        let copy = made(|out| (api.CloneSessionOptions)(options, out));
        (api.ReleaseSessionOptions)(options);
        let (key, mut has, mut size) = (c"session.intra_op.allow_spinning".as_ptr(), 0, 0);
        fine((api.HasSessionConfigEntry)(copy, key, &raw mut has));
        assert_eq!(has, 1);
        fine((api.GetSessionConfigEntry)(copy, key, null_mut(), &raw mut size));
        assert_eq!(size, 2);
        let mut text = [7u8; 2];
        fine((api.GetSessionConfigEntry)(copy, key, text.as_mut_ptr().cast(), &raw mut size));
        assert_eq!(&text, b"0\0");
        size = 1;
        assert_eq!(
            said((api.GetSessionConfigEntry)(copy, key, text.as_mut_ptr().cast(), &raw mut size)).1,
            "GetSessionConfigEntry: the text takes 2 bytes, and the buffer has 1"
        );
        assert_eq!(
            said((api.GetSessionConfigEntry)(copy, c"none".as_ptr(), null_mut(), &raw mut size)).1,
            "GetSessionConfigEntry: there is no config entry \"none\""
        );
        assert_eq!(
            said((api.SetIntraOpNumThreads)(copy, -1)).1,
            "SetIntraOpNumThreads: -1 is not a number of threads; 0 leaves it to the library"
        );
        let pairs = made(|out| (api.GetSessionOptionsConfigEntries)(copy, out));
        (api.ReleaseSessionOptions)(copy);
        (api.AddKeyValuePair)(pairs, c"key".as_ptr(), c"value".as_ptr());
        (api.AddKeyValuePair)(pairs, c"key".as_ptr(), c"other".as_ptr());
        let (mut keys, mut values, mut count) = (null(), null(), 0);
        (api.GetKeyValuePairs)(pairs, &raw mut keys, &raw mut values, &raw mut count);
        let texts = |at: *const *const c_char| [0, 1].map(|k| CStr::from_ptr(*at.add(k)).to_str().unwrap().to_string());
        assert_eq!((count, texts(keys)), (2, ["session.intra_op.allow_spinning", "key"].map(String::from)));
        assert_eq!(texts(values), ["0", "other"]);
        assert_eq!(CStr::from_ptr((api.GetKeyValue)(pairs, c"key".as_ptr())), c"other");
        (api.RemoveKeyValuePair)(pairs, c"key".as_ptr());
        assert!((api.GetKeyValue)(pairs, c"key".as_ptr()).is_null());
        (api.ReleaseKeyValuePairs)(pairs);
        let run = made(|out| (api.CreateRunOptions)(out));
        fine((api.RunOptionsSetRunTag)(run, c"tag".as_ptr()));
        let mut tag = null();
        fine((api.RunOptionsGetRunTag)(run, &raw mut tag));
        assert_eq!(CStr::from_ptr(tag), c"tag");
        (api.ReleaseRunOptions)(run);
    }
}
