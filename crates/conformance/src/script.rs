//! Parses scripts into commands. Responses in a script are ignored.

/// A command with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Line of the command.
    pub line: String,
    /// Lines of the body.
    pub body: String,
}

/// A parsed script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Command>);

const WORDS: [&str; 18] = [
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
        for line in text
            .lines()
            .filter(|line| !line.starts_with('<') && !line.trim().is_empty())
        {
            let word = line.split([' ', ':']).next().unwrap_or("");
            if WORDS.contains(&word) {
                commands.push(Command {
                    line: line.trim_end().to_owned(),
                    body: String::new(),
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

    /// Returns the words after the keyword.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.line.split(' ').skip(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_ignored() {
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
        assert_eq!(script.0[1].arguments().collect::<Vec<_>>(), ["/a", "b"]);
    }
}
