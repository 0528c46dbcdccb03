//! RegexFullMatch: whether whole strings match a regular expression.
//! <https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html>

use crate::ops::prelude::*;

pub(super) const REGEX_FULL_MATCH: Implementation = Implementation::missing("", "RegexFullMatch", |facts| {
    facts.give_shape_of(0, 0);
    Ok(())
});

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn shapes() {
        infer("RegexFullMatch", 20, [string("pattern", "a*")], ["string[N, 3]"]).gives("[N, 3]");
    }
}
