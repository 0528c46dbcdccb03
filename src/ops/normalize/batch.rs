//! BatchNormalization: each channel by its mean and variance, scaled and shifted.
//! <https://onnx.ai/onnx/operators/onnx__BatchNormalization.html>

use crate::ops::prelude::*;

pub(super) const BATCH_NORMALIZATION: Implementation = Implementation::missing("", "BatchNormalization", infer);

/// Up to version 8 the attribute `spatial` may ask for a mean of each place instead of one of each channel: then all other
/// inputs have the shape of an image. Version 14 has no saved mean and variance any more.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_shape_of(0, 0);
    let outputs = 1..facts.output_count();
    if facts.attribute("spatial").is_some() && !facts.is_set("spatial")? {
        for k in outputs {
            facts.give_shape_of(k, 3);
        }
        return Ok(());
    }
    let mut channels = match facts.ranked(0, 1..)? {
        // A list has one channel.
        Some([_]) => Dim::Fixed(1),
        Some([_, channels, ..]) => channels.clone(),
        _ => Dim::Unknown,
    };
    for k in 1..5 {
        let Some([own]) = facts.sizes(k)? else { continue };
        channels = channels.both(own).ok_or_else(|| {
            let name = facts.input_name(k);
            let text = format!("{} has {own} numbers, but there are {channels} channels", quote(name));
            Error::input(text).parameter(name).axis(0)
        })?;
    }
    for k in outputs {
        facts.give(k, [channels.clone()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        let x = "float[N, C, H, W]";
        infer("BatchNormalization", 15, [], [x, "float[3]", "float[3]", "float[3]", "float[3]"]).gives_all([
            "[N, C, H, W]",
            "[3]",
            "[3]",
        ]);
        infer("BatchNormalization", 9, [], [x, "float", "float", "float", "float"]).gives_all([
            "[N, C, H, W]",
            "[C]",
            "[C]",
            "[C]",
            "[C]",
        ]);
        infer("BatchNormalization", 14, [int("training_mode", 1)], ["float", "float", "float", "float[C]", "float"])
            .gives_all(["", "[C]", "[C]"]);
        infer("BatchNormalization", 9, [], ["float[N]", "float[1]", "float[1]", "float[1]", "float[1]"])
            .gives_all(["[N]", "[1]"]);
    }

    #[test]
    fn statistics_of_each_place() {
        let (x, each) = ("float[N, C, H, W]", "float[C, H, W]");
        infer("BatchNormalization", 7, [int("spatial", 0)], [x, each, each, each, each]).gives_all([
            "[N, C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
        ]);
        infer("BatchNormalization", 7, [], [x, each, each, each, each])
            .fails("\"scale\" has shape [C, H, W] of rank 3");
        let consumed = ("consumed_inputs", Attribute::Ints(vec![0, 0, 0, 1, 1]));
        infer("BatchNormalization", 1, [consumed], [x, "float", "float", "float", "float"]).gives_all([
            "[N, C, H, W]",
            "[C]",
            "[C]",
            "[C]",
            "[C]",
        ]);
    }

    #[test]
    fn faults() {
        let (x, two) = ("float[N, 3, H, W]", "float[2]");
        infer("BatchNormalization", 15, [], [x, "float[3]", two, two, two])
            .fails("\"B\" has 2 numbers, but there are 3 channels");
        infer("BatchNormalization", 15, [], ["float[N]", two, two, two, two]).fails("\"scale\" has 2 numbers");
    }
}
