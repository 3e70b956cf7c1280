//! Scripts: takes text, gives commands. Answers in the text are passed over.

/// One line of a script with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The line as written.
    pub line: String,
    /// The lines below it.
    pub body: String,
}

/// A script.
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
    /// Reads a script.
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
    /// The word it begins with, such as `PATCH`.
    #[must_use]
    pub fn word(&self) -> &str {
        self.line.split([' ', ':']).next().unwrap_or("")
    }

    /// What comes after the word's colon, such as `merge`.
    #[must_use]
    pub fn variant(&self) -> &str {
        let first = self.line.split(' ').next().unwrap_or("");
        first.split_once(':').map_or("", |(_, variant)| variant)
    }

    /// The remaining words.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.line.split(' ').skip(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_passed_over() {
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
