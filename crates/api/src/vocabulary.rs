//! Words with a fixed spelling: takes a table of variants and texts, gives an enum that keeps what it does not know.

/// Makes an enum whose variants have a text, plus `Other` for texts of others: reading and writing never loses one.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A word of somebody else, kept as it is; empty when nothing was said.
            Other(String),
        }

        impl $name {
            /// Every word of ours.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As it is spelled everywhere: status, events, terminal.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }

            /// Whether nothing was said.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.name().is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(<String as serde::Deserialize>::deserialize(deserializer)?))
            }
        }
    };
}

pub(crate) use vocabulary;
