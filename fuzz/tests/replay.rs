//! Each target holds on its seeds, and on inputs that are always the same.

use onnxref_fuzz::TARGETS;
use onnxref_fuzz::replay::replay;

/// An interpreter takes thousands of times as long.
const COUNT: u64 = if cfg!(miri) { 10 } else { 3_000 };

macro_rules! hold {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let target = TARGETS.into_iter().find(|(name, _)| *name == stringify!($name));
            assert!(replay(target.expect("a target"), (COUNT, 1), None));
        })*

        #[test]
        fn all_are_here() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$(stringify!($name)),*]);
        }
    };
}

hold!(load model tensor operators external graphs nodes document text);
