use crate::operator::Attribute;
use crate::ops::testing::{infer, int, ints, outputs, run, string, strings, tensor};
use crate::tensor::Tensor;

const CLASSIFIER: &str = "ai.onnx.ml.TreeEnsembleClassifier";
const REGRESSOR: &str = "ai.onnx.ml.TreeEnsembleRegressor";
const NAN: f32 = f32::NAN;

fn floats<'a>(name: &'a str, values: &[f32]) -> (&'a str, Attribute) {
    (name, Attribute::Floats(values.to_vec()))
}

fn doubles<'a>(name: &'a str, values: &[f64]) -> (&'a str, Attribute) {
    (name, Attribute::Tensor(values.to_vec().into()))
}

fn bytes<'a>(name: &'a str, values: &[u8]) -> (&'a str, Attribute) {
    (name, Attribute::Tensor(values.to_vec().into()))
}

/// Whether feature 0 is at most 1, or missing; if it isn't, whether feature 1 is above 2. With other attributes.
fn old<const N: usize>(more: [(&'static str, Attribute); N]) -> Vec<(&'static str, Attribute)> {
    let nodes = [
        ints("nodes_treeids", &[3; 5]),
        ints("nodes_nodeids", &[0, 1, 2, 3, 4]),
        ints("nodes_featureids", &[0, 0, 1, 0, 0]),
        floats("nodes_values", &[1.0, 0.0, 2.0, 0.0, 0.0]),
        strings("nodes_modes", &["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 0, 3, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 4, 0, 0]),
        ints("nodes_missing_value_tracks_true", &[1, 0, 0, 0, 0]),
    ];
    nodes.into_iter().chain(more).collect()
}

fn classes<const N: usize>(
    ids: &[i64],
    weights: &[f32],
    more: [(&'static str, Attribute); N],
) -> [(&'static str, Attribute); 14] {
    let mut all = old([
        ints("class_treeids", &[3; 3]),
        ints("class_nodeids", &[1, 3, 4]),
        ints("class_ids", ids),
        floats("class_weights", weights),
    ]);
    all.extend(more);
    all.try_into().unwrap()
}

#[test]
fn targets_of_old_versions() {
    let x = tensor(&[4, 2], [1f32, 0.0, 2.0, 3.0, 2.0, NAN, NAN, 9.0]);
    let votes = |more: (&'static str, Attribute)| -> [_; 13] {
        let all = old([
            ints("target_treeids", &[3; 3]),
            ints("target_nodeids", &[4, 1, 3]),
            ints("target_ids", &[0; 3]),
            floats("target_weights", &[4.0, 1.0, 2.0]),
            more,
        ]);
        all.try_into().unwrap()
    };
    run(REGRESSOR, 1, votes(int("n_targets", 1)), [&x]).gives(tensor(&[4, 1], [1f32, 2.0, 4.0, 1.0]));
    run(REGRESSOR, 3, votes(floats("base_values", &[0.5])), [&x]).gives(tensor(&[4, 1], [1.5f32, 2.5, 4.5, 1.5]));
    // Votes at decisions, which no row ends at, don't count.
    let more = old([
        ints("target_treeids", &[3; 5]),
        ints("target_nodeids", &[0, 4, 1, 2, 3]),
        ints("target_ids", &[0; 5]),
        floats("target_weights", &[8.0, 4.0, 1.0, 9.0, 2.0]),
    ]);
    run(REGRESSOR, 1, <[_; 12]>::try_from(more).unwrap(), [&x]).gives(tensor(&[4, 1], [1f32, 2.0, 4.0, 1.0]));
    run(REGRESSOR, 1, votes(int("n_targets", 2)), [&tensor(&[1, 2], [5i64, 3])]).gives(tensor(&[1, 2], [2f32, 0.0]));
    run(REGRESSOR, 1, votes(int("n_targets", 1)), [&tensor(&[1, 1], [5f32])])
        .fails("\"X\" has 1 features: the trees need 2");
    run(REGRESSOR, 1, votes(floats("base_values", &[0.5; 2])), [&x]).fails("base_values has 2 entries: allowed 0, 1");
}

#[test]
fn classes_of_old_versions() {
    let x = tensor(&[3, 2], [1f32, 0.0, 2.0, 3.0, 2.0, 1.0]);
    let three = classes(
        &[0, 1, 2],
        &[1.0, 1.0, 1.0],
        [strings("classlabels_strings", &["a", "b", "c"]), floats("base_values", &[0.0, 0.25, 0.0])],
    );
    let labels = Tensor::from_strings(&[3], ["a", "b", "c"]).unwrap();
    let scores = tensor(&[3, 3], [1f32, 0.25, 0.0, 0.0, 1.25, 0.0, 0.0, 0.25, 1.0]);
    assert_eq!(outputs(CLASSIFIER, 1, three, [&x]), [labels.into(), scores]);
    // The score of the second class, as a probability, and as a margin.
    let label = || ints("classlabels_int64s", &[7, 8]);
    let one = classes(&[0; 3], &[0.25, 0.75, 0.5], [label(), string("post_transform", "NONE")]);
    let scores = tensor(&[3, 2], [0.75f32, 0.25, 0.25, 0.75, 0.5, 0.5]);
    assert_eq!(outputs(CLASSIFIER, 1, one, [&x]), [tensor(&[3], [7i64, 8, 7]), scores]);
    let margin = classes(&[0; 3], &[-1.0, 2.0, 0.0], [label(), floats("base_values", &[0.5])]);
    let scores = tensor(&[3, 2], [0.5f32, -0.5, -2.5, 2.5, -0.5, 0.5]);
    assert_eq!(outputs(CLASSIFIER, 1, margin, [&x]), [tensor(&[3], [7i64, 8, 8]), scores]);
}

#[test]
fn version_5() {
    let x = tensor(&[3, 1], [1f64, 3.0, 9.0]);
    let tree = |mode: u8| {
        [
            ints("tree_roots", &[0]),
            bytes("nodes_modes", &[mode]),
            ints("nodes_featureids", &[0]),
            doubles("nodes_splits", &[3.0]),
            ints("nodes_truenodeids", &[1]),
            ints("nodes_trueleafs", &[1]),
            ints("nodes_falsenodeids", &[0]),
            ints("nodes_falseleafs", &[1]),
            ints("leaf_targetids", &[0, 0]),
            doubles("leaf_weights", &[10.0, 20.0]),
            doubles("membership_values", &[1.0, 9.0, f64::NAN]),
            int("n_targets", 1),
        ]
    };
    let (yes, no) = (20.0, 10.0);
    let want =
        [[yes, yes, no], [yes, no, no], [no, yes, yes], [no, no, yes], [no, yes, no], [yes, no, yes], [yes, no, yes]];
    for (mode, want) in want.into_iter().enumerate() {
        run("ai.onnx.ml.TreeEnsemble", 5, tree(mode as u8), [&x]).gives(tensor(&[3, 1], want));
    }
    run("ai.onnx.ml.TreeEnsemble", 5, tree(7), [&x]).fails("nodes_modes[0] is 7: allowed 0..=6");
    let members = |members: &[f64]| {
        tree(6).map(|own| if own.0 == "membership_values" { doubles("membership_values", members) } else { own })
    };
    // NaN ends a set, and need not end the last one.
    for set in [&[1.0, 9.0][..], &[1.0, 9.0, f64::NAN, 3.0]] {
        run("ai.onnx.ml.TreeEnsemble", 5, members(set), [&x]).gives(tensor(&[3, 1], [yes, no, yes]));
    }
    run("ai.onnx.ml.TreeEnsemble", 5, members(&[f64::NAN]), [&x]).gives(tensor(&[3, 1], [no; 3]));
    run("ai.onnx.ml.TreeEnsemble", 5, members(&[]), [&x])
        .fails("membership_values has 0 sets: node 0 tests for members and needs one more");
}

/// All lists of nodes and of votes are given, or none of them.
#[test]
fn lists_that_are_left_out() {
    let votes = [
        ints("target_treeids", &[3; 3]),
        ints("target_nodeids", &[4, 1, 3]),
        ints("target_ids", &[0; 3]),
        floats("target_weights", &[4.0, 1.0, 2.0]),
    ];
    let x = tensor(&[1, 2], [2f32, 3.0]);
    let without = |name: &str| -> [_; 11] {
        let all = old(votes.clone()).into_iter().filter(|(own, _)| *own != name);
        all.collect::<Vec<_>>().try_into().unwrap()
    };
    run(REGRESSOR, 3, without("nodes_missing_value_tracks_true"), [&x]).gives(tensor(&[1, 1], [2f32]));
    for (name, by) in [
        ("nodes_modes", "nodes_treeids has 5"),
        ("nodes_treeids", "nodes_modes has 5"),
        ("nodes_nodeids", "nodes_modes has 5"),
        ("nodes_featureids", "nodes_modes has 5"),
        ("nodes_values", "nodes_modes has 5"),
        ("nodes_truenodeids", "nodes_modes has 5"),
        ("nodes_falsenodeids", "nodes_modes has 5"),
        ("target_ids", "target_treeids has 3"),
        ("target_treeids", "target_ids has 3"),
        ("target_nodeids", "target_ids has 3"),
        ("target_weights", "target_ids has 3"),
    ] {
        let error = run(REGRESSOR, 3, without(name), [&x]).fails(&format!("{name} has no entries, and {by}: they"));
        assert_eq!(error.place().attribute.as_deref(), Some(name));
    }
    // Doubles stand in their place.
    let weights = |own| if own == "nodes_values" { [1.0, 0.0, 2.0, 0.0, 0.0].as_slice() } else { &[4.0, 1.0, 2.0] };
    let wide = old(votes.clone()).into_iter().map(|own| match own.0 {
        "nodes_values" => doubles("nodes_values_as_tensor", weights(own.0)),
        "target_weights" => doubles("target_weights_as_tensor", weights(own.0)),
        _ => own,
    });
    let wide: [_; 12] = wide.collect::<Vec<_>>().try_into().unwrap();
    run(REGRESSOR, 3, wide, [&x]).gives(tensor(&[1, 1], [2f32]));
    let short = [
        ints("nodes_featureids", &[0]),
        bytes("nodes_modes", &[6]),
        ints("nodes_truenodeids", &[0]),
        ints("nodes_trueleafs", &[1]),
        ints("nodes_falsenodeids", &[1]),
        ints("nodes_falseleafs", &[1]),
    ];
    infer("ai.onnx.ml.TreeEnsemble", 5, short, ["float"])
        .fails("nodes_splits has no entries, and nodes_modes has 1: they must be equally many");
    infer("ai.onnx.ml.TreeEnsemble", 5, [ints("leaf_targetids", &[0])], ["float"])
        .fails("leaf_weights has no entries, and leaf_targetids has 1: they must be equally many");
}

#[test]
fn faults_of_trees() {
    let change = |name: &'static str, to: Attribute, text: &str| {
        let mut all =
            classes(&[0; 3], &[1.0; 3], [ints("classlabels_int64s", &[7, 8]), string("post_transform", "NONE")]);
        all.iter_mut().find(|(own, _)| *own == name).unwrap().1 = to;
        infer(CLASSIFIER, 1, all, ["float[N, 2]"]).fails(text);
    };
    change(
        "nodes_truenodeids",
        Attribute::Ints(vec![9, 0, 3, 0, 0]),
        "nodes_truenodeids[0] is 9: its tree has no such node",
    );
    change("nodes_truenodeids", Attribute::Ints(vec![1, 0, 2, 0, 0]), "decisions lead back to themselves");
    change("nodes_truenodeids", Attribute::Ints(vec![1, 0, 0, 0, 0]), "decisions lead back to themselves");
    change(
        "nodes_nodeids",
        Attribute::Ints(vec![0, 1, 2, 3, 3]),
        "nodes_nodeids[4] is 3: its tree has that node already",
    );
    change(
        "nodes_featureids",
        Attribute::Ints(vec![-1, 0, 0, 0, 0]),
        "nodes_featureids[0] is -1: it must be at least 0",
    );
    change("class_nodeids", Attribute::Ints(vec![1, 3, 5]), "class_nodeids[2] is 5: its tree has no such node");
    change("class_ids", Attribute::Ints(vec![0, 0, 2]), "class_ids holds 2: allowed 0..=1");
    let modes = ["BRANCH_LEQ", "LEAF", "BRANCH", "LEAF", "LEAF"].map(str::to_string).to_vec();
    change("nodes_modes", Attribute::Strings(modes), "nodes_modes[2] is \"BRANCH\": allowed BRANCH_LEQ, ");
}

#[test]
fn inferred() {
    let name = "ai.onnx.ml.TreeEnsemble";
    infer(name, 5, [int("n_targets", 2)], ["double[N, 3]"]).gives("[N, 2]");
    infer(name, 5, [], ["double"]).gives("[?, 1]");
    infer(name, 5, [ints("nodes_featureids", &[1]), ints("nodes_trueleafs", &[1, 2])], ["double"])
        .fails("nodes_trueleafs has 2 entries, and nodes_featureids has 1: they must be equally many");
    infer(name, 5, [ints("leaf_targetids", &[1]), doubles("leaf_weights", &[1.0; 2])], ["double"])
        .fails("leaf_weights has 2 entries, and leaf_targetids has 1");
    infer(name, 5, [], ["double[3]"]).fails("allowed rank 2");
    infer(name, 5, [int("post_transform", 5)], ["double"]).fails("post_transform is 5: allowed 0..=4");
    infer(CLASSIFIER, 1, [strings("classlabels_strings", &["a", "b"])], ["float[N, 3]"]).gives_all(["[N]", "[N, 2]"]);
    infer(CLASSIFIER, 3, [ints("classlabels_int64s", &[5])], ["float"]).gives_all(["[?]", "[?, 1]"]);
    infer(CLASSIFIER, 3, [ints("classlabels_int64s", &[5])], ["float"]).has_type("int64");
    infer(CLASSIFIER, 3, [ints("classlabels_int64s", &[5, 6]), floats("base_values", &[0.5; 3])], ["float"])
        .fails("base_values has 3 entries: allowed 0, 2, 1");
    infer(CLASSIFIER, 3, [], ["float"]).fails("neither classlabels_int64s nor classlabels_strings is given");
    infer(CLASSIFIER, 3, [ints("class_ids", &[5]), doubles("class_weights_as_tensor", &[1.0; 2])], ["float"])
        .fails("class_weights_as_tensor has 2 entries, and class_ids has 1");
    infer(REGRESSOR, 3, [int("n_targets", 4)], ["int32[N, 3]"]).gives("[N, 4]");
    infer(REGRESSOR, 1, [], ["int32[N, 3]"]).gives("[N, 1]");
    infer(REGRESSOR, 3, [floats("base_values", &[1.0]), doubles("base_values_as_tensor", &[1.0])], ["float"])
        .fails("base_values and base_values_as_tensor are both given: allowed is one");
    infer(REGRESSOR, 1, [string("aggregate_function", "MEAN")], ["float"])
        .fails("aggregate_function is \"MEAN\": allowed AVERAGE, SUM, MIN, MAX");
}
