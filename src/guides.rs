//! Guides, with examples that are compiled and run as tests. They are the files of `docs/guides`.

macro_rules! guides {
    ($($name:ident $file:literal)*) => {$(
        // Of several definitions of a link the first counts: these replace the links to files at the end of each file.
        #[doc = "[embed]: embed"]
        #[doc = "[custom_operator]: custom_operator"]
        #[doc = "[embedding_tables]: embedding_tables"]
        #[doc = "[threads]: threads"]
        #[doc = "[errors]: errors"]
        #[doc = "[checking]: checking"]
        #[doc = "[changing]: changing"]
        #[doc = "[batch_jobs]: batch_jobs"]
        #[doc = "[test_engine]: test_engine"]
        #[doc = ""]
        #[doc = include_str!(concat!("../docs/guides/", $file))]
        pub mod $name {}
    )*};
}

guides! {
    embed "embed.md"
    custom_operator "custom_operator.md"
    embedding_tables "embedding_tables.md"
    threads "threads.md"
    errors "errors.md"
    checking "checking.md"
    changing "changing.md"
    batch_jobs "batch_jobs.md"
    test_engine "test_engine.md"
}
