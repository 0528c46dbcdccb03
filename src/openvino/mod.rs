//! Everything that knows OpenVINO IR.

#[cfg(feature = "openvino")]
mod network;
#[cfg(feature = "openvino")]
mod xml;

#[cfg(feature = "openvino")]
pub(crate) use network::load;

/// Whether a model file is XML: an `.onnx` file never starts like this.
pub(crate) fn is_ir(file: &[u8]) -> bool {
    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    text.trim_ascii_start().first() == Some(&b'<')
}

/// Refuses a network.
#[cfg(not(feature = "openvino"))]
pub(crate) fn load(
    _: &[u8],
    _: Option<&std::path::Path>,
    _: &crate::registry::Registry,
    _: &crate::files::ModelFiles,
) -> crate::error::Result<crate::files::LoadedModel> {
    let text = "the file is OpenVINO IR: this build can't read it, because it lacks the feature openvino";
    Err(crate::error::Error::unsupported(text))
}
