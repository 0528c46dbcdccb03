//! Structs that are messages.

/// A struct whose fields are those of a message, by their numbers; `other` has those that are not listed.
macro_rules! message {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty = $number:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
            /// All other fields.
            pub other: $crate::document::Fields,
        }

        impl $crate::document::wire::Message for $name {
            fn read(&mut self, field: &$crate::document::wire::Field<'_>) -> $crate::error::Result<bool> {
                match field.number {
                    $($number => $crate::document::wire::Content::read(&mut self.$field, field)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn other(&mut self) -> &mut $crate::document::Fields {
                &mut self.other
            }

            fn write(&self, to: &mut $crate::document::wire::Writer<'_>) -> $crate::error::Result<()> {
                $($crate::document::wire::Content::write(&self.$field, $number, to)?;)*
                self.other.iter().try_for_each(|field| to.raw(field))
            }
        }
    };
}

pub(super) use message;
