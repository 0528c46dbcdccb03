//! What the versions of operators changed besides types, texts, and new inputs and attributes whose defaults keep the
//! meaning: that needs no row here. Attributes that became inputs may have lost a default.

use super::AttributeValue as V;
use super::step::{Done, LATER, Step};
use crate::dtype::DType;
use crate::tensor::Tensor;
use half::f16;

/// Makes an experimental operator of old releases one of the standard.
pub(super) fn renew(step: &mut Step<'_>) -> Done {
    // Of smaller floats, each node would round.
    let exact = matches!(step.dtype(0), Some(DType::Float | DType::Double));
    match step.node.op_type.as_str() {
        // The text is the same.
        "ThresholdedRelu" => Ok(()),
        "DynamicSlice" => {
            step.node.op_type = "Slice".to_string();
            Ok(())
        }
        "Scale" if exact => {
            step.default("scale", 1.0f32);
            step.node.op_type = "Mul".to_string();
            step.number_to_input("scale", 1, None)
        }
        "ScaledTanh" if exact => step.scaled("Tanh"),
        "ParametricSoftplus" if exact => step.scaled("Softplus"),
        _ => Err("it was an experimental operator, which ONNX dropped in release 1.5".to_string()),
    }
}

/// Changes the form of a node to that of the next version of its operator.
pub(super) fn change(step: &mut Step<'_>, since: i64) -> Done {
    step.remove("consumed_inputs");
    let operator = step.node.op_type.clone();
    match (operator.as_str(), since) {
        ("Squeeze" | "Unsqueeze" | "ReduceSum", 13) => step.list_to_input("axes", 1),
        (operator, 18) if operator.starts_with("Reduce") => step.list_to_input("axes", 1),
        ("Reshape", 5) => step.list_to_input("shape", 1),
        ("Slice", 10) => {
            ["starts", "ends", "axes"].iter().zip(1..).try_for_each(|(name, k)| step.list_to_input(name, k))
        }
        ("Split", 2) if step.node.get("axis").is_none() => {
            Err("its axis isn't given, and {new} has another default".to_string())
        }
        ("Split", 2) if step.node.inputs.get(1).is_some_and(|sizes| !sizes.is_empty()) => {
            if step.to < 13 {
                return Err("its sizes are an input, and an attribute of {new}".to_string());
            }
            step.cast(1);
            Ok(())
        }
        ("Split", 13) => step.list_to_input("split", 1),
        ("Split", 18) => {
            if step.node.inputs.get(1).is_none_or(String::is_empty) {
                step.set("num_outputs", step.node.outputs.len() as i64);
            }
            Ok(())
        }
        ("TopK", 10) => {
            let k = step.int("k")?.ok_or("attribute k is missing")?;
            step.remove("k");
            step.constant("k", 1, &Tensor::from(vec![k]));
            Ok(())
        }
        ("DFT", 20) => {
            let axis = step.int("axis")?.unwrap_or(1);
            step.remove("axis");
            step.constant("axis", 2, &Tensor::scalar(axis));
            Ok(())
        }
        ("Clip", 6) => match step.dtype(0) {
            Some(DType::Float) => Ok(()),
            // The bounds that are left out are those of the type, as they are again then.
            _ if step.to >= 11 => Ok(()),
            Some(DType::Float16) => {
                step.default("min", f16::MIN.to_f32());
                step.default("max", f16::MAX.to_f32());
                Ok(())
            }
            _ if step.node.get("min").is_some() && step.node.get("max").is_some() => Ok(()),
            _ => Err("its bounds are those of its type, and {new} has those of float32".to_string()),
        },
        ("Clip", 11) => {
            // The bounds that version 6 leaves out are those of float32.
            if step.first == 6 && step.dtype(0) != Some(DType::Float) {
                step.default("min", f32::MIN);
                step.default("max", f32::MAX);
            }
            step.number_to_input("min", 1, None)?;
            step.number_to_input("max", 2, None)
        }
        ("Pad", 2) => {
            step.rename("paddings", "pads");
            Ok(())
        }
        ("Pad", 11) => {
            step.list_to_input("pads", 1)?;
            step.number_to_input("value", 2, Some(0.0))
        }
        ("Dropout", 7) => step.inference(),
        ("Dropout", 10) if !step.drop_outputs_after(1) => Err("its mask is boolean in {new}".to_string()),
        ("Dropout", 12) => {
            if let Some(ratio) = step.float("ratio")? {
                step.remove("ratio");
                step.constant("ratio", 1, &Tensor::scalar(ratio));
            }
            Ok(())
        }
        ("BatchNormalization", 7) => step.inference(),
        ("BatchNormalization", 9) => match step.int("spatial")? {
            None | Some(1) => {
                step.remove("spatial");
                Ok(())
            }
            // Each activation is a channel.
            Some(_) if step.dims(0).is_some_and(|dims| dims.len() == 2) => {
                step.remove("spatial");
                Ok(())
            }
            Some(value) => Err(format!("its spatial is {value}, which {LATER} can't say")),
        },
        ("BatchNormalization", 14) => {
            if step.node.outputs.iter().skip(1).any(|name| !name.is_empty()) {
                return Err("it has outputs of training, and those of {new} mean others".to_string());
            }
            step.node.outputs.truncate(1);
            Ok(())
        }
        ("Softmax" | "LogSoftmax" | "Hardmax", 13) => step.last_axis(),
        ("Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Less" | "Greater", 7) => {
            step.broadcast()
        }
        ("Gemm", 7) => {
            step.remove("broadcast");
            Ok(())
        }
        ("PRelu", 7) => {
            let [x, slopes] = [0, 1].map(|input| step.dims(input).map(|dims| dims.len()));
            if step.is_single(1) {
                // They may have no more dimensions.
                if x.unwrap_or(0) < slopes.unwrap_or(0) {
                    step.squeeze(1);
                }
                return Ok(());
            }
            match (x, slopes) {
                (Some(2), _) => Ok(()),
                (Some(rank @ 3..), Some(1)) => {
                    step.unsqueeze(1, 1, rank - 2);
                    Ok(())
                }
                _ => Err("its slopes are those of channels, and {new} broadcasts from the last dimension".to_string()),
            }
        }
        ("Concat", 4) => {
            step.default("axis", 1i64);
            Ok(())
        }
        ("Cast", 6) => {
            let to = step.text("to")?.unwrap_or_default();
            let code = ELEMENT_TYPES.iter().position(|name| *name == to).ok_or("its type is not known")?;
            step.set("to", code as i64 + 1);
            Ok(())
        }
        ("Cast", 24) => {
            let to = step.int("to")?.and_then(|code| DType::from_code(i32::try_from(code).ok()?));
            step.rounds_alike(to)
        }
        ("CastLike", 24) => match step.dtype(1) {
            Some(to) => step.rounds_alike(Some(to)),
            None => Err("its type doesn't follow, and {new} rounds some differently".to_string()),
        },
        ("Selu", 6) => {
            step.default("alpha", 1.6732f32);
            step.default("gamma", 1.0507f32);
            Ok(())
        }
        ("LpPool" | "GlobalLpPool", 2) => match step.float("p")? {
            Some(p) if p.fract() != 0.0 || p.abs() >= i64::MAX as f32 => {
                Err(format!("its p is {p}, and that of {LATER} is whole"))
            }
            Some(p) => {
                step.set("p", p as i64);
                Ok(())
            }
            None => {
                step.set("p", 2i64);
                Ok(())
            }
        },
        ("GRU", 3) => {
            step.default("direction", "forward");
            Ok(())
        }
        ("RNN" | "GRU" | "LSTM", 7) => {
            step.remove("output_sequence");
            Ok(())
        }
        ("Upsample", 7) => {
            let height = step.float("height_scale")?.ok_or("attribute height_scale is missing")?;
            let width = step.float("width_scale")?.ok_or("attribute width_scale is missing")?;
            ["height_scale", "width_scale"].iter().for_each(|name| step.remove(name));
            if step.text("mode")?.as_deref() == Some("bilinear") {
                step.set("mode", "linear");
            }
            step.set("scales", vec![1.0, 1.0, height, width]);
            Ok(())
        }
        ("Upsample", 9) => {
            let Some(V::Floats(scales)) = step.node.get("scales") else {
                return Err("attribute scales is not a list of numbers".to_string());
            };
            let scales = Tensor::from(scales.clone());
            step.remove("scales");
            step.constant("scales", 1, &scales);
            Ok(())
        }
        ("Upsample", 10) => {
            step.node.op_type = "Resize".to_string();
            step.was_upsample = true;
            Ok(())
        }
        ("Resize", 11) => {
            let nearest = step.text("mode")?.is_none_or(|mode| mode == "nearest");
            let rounding = if nearest { Some(step.nearest()?) } else { None };
            let scales = step.node.inputs.get(1).cloned().unwrap_or_default();
            step.constant("roi", 1, &Tensor::from(Vec::<f32>::new()));
            step.node.inputs.push(scales);
            step.set("coordinate_transformation_mode", "asymmetric");
            if let Some(rounding) = rounding {
                step.set("nearest_mode", rounding);
            }
            Ok(())
        }
        ("Resize", 13) => {
            // Scales were there beside sizes, but empty.
            if step.node.inputs.get(3).is_some_and(|sizes| !sizes.is_empty())
                && let Some(scales) = step.node.inputs.get_mut(2)
            {
                scales.clear();
            }
            Ok(())
        }
        ("ConvTranspose", 11) => {
            let read = |value: &V| if let V::Ints(values) = value { Some(values.clone()) } else { None };
            if let Some(sizes) = step.get("output_shape", "a list of integers", read)? {
                let rank = step.dims(0).ok_or("how many of its output_shape are of {new} isn't known")?.len();
                if sizes.len() == rank {
                    step.set("output_shape", sizes.into_iter().skip(2).collect::<Vec<i64>>());
                }
            }
            Ok(())
        }
        ("RoiAlign", 16) => {
            step.default("coordinate_transformation_mode", "output_half_pixel");
            Ok(())
        }
        ("GridSample", 20) => {
            match step.text("mode")?.as_deref() {
                None | Some("bilinear") => step.set("mode", "linear"),
                Some("bicubic") => step.set("mode", "cubic"),
                Some(_) => {}
            }
            Ok(())
        }
        ("Scatter", 11) => {
            step.node.op_type = "ScatterElements".to_string();
            Ok(())
        }
        ("OneHot", 11) if step.is_natural(0) => Ok(()),
        ("OneHot", 11) => Err("negative indices select nothing, and those of {new} count from the end".to_string()),
        ("Attention", 24) if step.dims(3).is_some_and(|mask| mask.last().is_none_or(|keys| *keys == Some(1))) => {
            Err("its mask is one for all keys, and {new} excludes those that it doesn't have".to_string())
        }
        ("GroupNormalization", 21) => step.scale_channels(),
        ("Scan", 9) => Err("its inputs have a batch, and those of {new} have none".to_string()),
        ("Tile", 6) => step.repeat_all(),
        _ => Ok(()),
    }
}

/// Names of element types in Cast-1, numbered from 1.
const ELEMENT_TYPES: [&str; 15] = [
    "FLOAT",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FLOAT16",
    "DOUBLE",
    "UINT32",
    "UINT64",
    "COMPLEX64",
    "COMPLEX128",
];
