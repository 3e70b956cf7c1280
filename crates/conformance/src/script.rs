//! Parses scripts into commands with their stored responses.

use http::Method;

/// A command with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Line of the command.
    pub line: String,
    /// Lines of the body.
    pub body: String,
    /// Lines of the stored response, as in a transcript.
    pub response: String,
}

/// A parsed script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Command>);

const KEYWORDS: [&str; 18] = [
    "AWAIT",
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "SHOW",
    "SET",
    "WATCH",
    "EVENTS",
    "UNTIL",
    "AS",
    "POD_BEHAVIOR",
    "HOOK",
    "PROBE",
    "HOOK_CALLS",
    "HEADER",
    "#",
];

impl Script {
    /// Parses a script.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut commands: Vec<Command> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if line.starts_with('<') {
                if let Some(last) = commands.last_mut() {
                    last.response.push_str(line);
                    last.response.push('\n');
                }
                continue;
            }
            let word = line.split([' ', ':']).next().unwrap_or("");
            if KEYWORDS.contains(&word) {
                commands.push(Command {
                    line: line.trim_end().to_owned(),
                    body: String::new(),
                    response: String::new(),
                });
            } else if let Some(last) = commands.last_mut() {
                last.body.push_str(line);
                last.body.push('\n');
            }
        }
        Self(commands)
    }
}

impl Command {
    /// Returns the keyword, such as `PATCH`.
    #[must_use]
    pub fn word(&self) -> &str {
        self.line.split([' ', ':']).next().unwrap_or("")
    }

    /// Returns the part after the colon of the keyword, such as `merge`.
    #[must_use]
    pub fn variant(&self) -> &str {
        let first = self.line.split(' ').next().unwrap_or("");
        first.split_once(':').map_or("", |(_, variant)| variant)
    }

    /// Returns the method of a repeated request, which is the variant, or `GET` without a variant. `None` if
    /// the variant is not a method.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match self.variant() {
            "" => Some(Method::GET),
            name => parse_method(name),
        }
    }

    /// Returns the words after the keyword.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.line.split(' ').skip(1)
    }
}

/// Returns the method with this name, if scripts can use it. `Method::from_bytes` accepts any word.
pub(crate) fn parse_method(name: &str) -> Option<Method> {
    let known = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    known.into_iter().find(|method| method.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_a_body_and_a_response() {
        let script = Script::parse("# x\nPATCH:merge /a b\n{\"c\":\n 1}\n< 200\n<  d: 1\n\nGET /e\n");
        let words: Vec<_> = script
            .0
            .iter()
            .map(|command| (command.word(), command.variant(), command.body.as_str()))
            .collect();
        assert_eq!(
            words,
            [
                ("#", "", ""),
                ("PATCH", "merge", "{\"c\":\n 1}\n"),
                ("GET", "", "")
            ]
        );
        let responses: Vec<_> = script.0.iter().map(|command| command.response.as_str()).collect();
        assert_eq!(responses, ["", "< 200\n<  d: 1\n", ""]);
        assert_eq!(script.0[1].arguments().collect::<Vec<_>>(), ["/a", "b"]);
    }

    #[test]
    fn unknown_methods_are_rejected() {
        for (line, expected) in [
            ("UNTIL 200 /a", Some(Method::GET)),
            ("UNTIL:DELETE 200 /a", Some(Method::DELETE)),
            ("AWAIT:POST /a /b c", Some(Method::POST)),
            ("UNTIL:PSOT 200 /a", None),
            ("AWAIT:post /a /b c", None),
        ] {
            let script = Script::parse(line);
            assert_eq!(script.0[0].method(), expected, "{line}");
        }
    }
}
