//! The fenced blocks of a Markdown page, with the markers before them.
//!
//! A marker is an HTML comment, so that readers do not see it:
//!
//! - `<!-- not executed: REASON -->` before a shell block that the test does not run;
//! - `<!-- exit: N -->` before a shell block that must end with this exit code;
//! - `<!-- file: PATH -->` before a block that is written to a file, relative to the page's directory;
//! - `<!-- setup: COMMAND -->` anywhere: a command that is run at this position and that readers do not need.

/// Part of a page that the test executes or counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A shell block.
    Shell { line: usize, text: String, exit: i32 },
    /// A shell block that is not run.
    Skipped { line: usize, reason: String },
    /// A file that readers write.
    File { path: String, text: String },
    /// A command that readers do not see.
    Setup { line: usize, command: String },
}

/// Languages of shell blocks.
const SHELL: &[&str] = &["sh", "shell", "bash", "console"];

/// Programs by which an indented or unlabeled block is recognized as shell.
const PROGRAMS: &[&str] = &[
    "mainstay ",
    "kubectl ",
    "helm ",
    "istioctl ",
    "cargo ",
    "docker ",
    "curl ",
];

/// Returns the steps of a page, or the first violation of the format.
pub(crate) fn parse(page: &str) -> Result<Vec<Step>, String> {
    let mut parser = Parser::default();
    for (index, line) in page.lines().enumerate() {
        parser.line(index + 1, line)?;
    }
    match parser.open {
        Some(open) => Err(format!("line {}: the block does not end", open.line)),
        None => Ok(parser.steps),
    }
}

#[derive(Default)]
struct Parser {
    steps: Vec<Step>,
    marker: Option<(String, String)>,
    open: Option<Open>,
}

struct Open {
    line: usize,
    language: String,
    indent: usize,
    text: String,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let content = line.trim_start();
        if let Some(open) = &mut self.open {
            if content.trim_end() == "```" {
                return self.close();
            }
            let indent = open.indent.min(line.len() - content.len());
            open.text.push_str(&line[indent..]);
            open.text.push('\n');
            return Ok(());
        }
        if let Some(language) = content.strip_prefix("```") {
            self.open = Some(Open {
                line: number,
                language: language.trim().to_owned(),
                indent: line.len() - content.len(),
                text: String::new(),
            });
            return Ok(());
        }
        self.prose(number, content)
    }

    fn prose(&mut self, number: usize, content: &str) -> Result<(), String> {
        let comment = content
            .strip_prefix("<!-- ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        match comment.and_then(|comment| comment.split_once(": ")) {
            Some(("setup", command)) => self.steps.push(Step::Setup {
                line: number,
                command: command.to_owned(),
            }),
            Some((word @ ("not executed" | "exit" | "file"), value)) => {
                self.marker = Some((word.to_owned(), value.to_owned()));
            }
            Some((word, _)) => return Err(format!("line {number}: unknown marker {word:?}")),
            None if content.is_empty() => {}
            None => {
                if let Some((word, _)) = self.marker.take() {
                    return Err(format!(
                        "line {number}: the marker {word:?} is not before a block"
                    ));
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let (Some(open), marker) = (self.open.take(), self.marker.take()) else {
            return Ok(());
        };
        let line = open.line;
        let is_shell = SHELL.contains(&open.language.as_str());
        let marker = marker
            .as_ref()
            .map(|(word, value)| (word.as_str(), value.as_str()));
        let step = match (is_shell, marker) {
            (_, Some(("file", path))) => Step::File {
                path: path.to_owned(),
                text: open.text,
            },
            (true, Some(("not executed", reason))) => Step::Skipped {
                line,
                reason: reason.to_owned(),
            },
            (true, Some(("exit", code))) => Step::Shell {
                line,
                text: open.text,
                exit: code.parse().map_err(|_| format!("line {line}: exit {code:?}"))?,
            },
            (true, _) => Step::Shell {
                line,
                text: open.text,
                exit: 0,
            },
            (false, Some((word, _))) => {
                return Err(format!(
                    "line {line}: the marker {word:?} is not before a shell block"
                ));
            }
            (false, None) => return check_other(&open),
        };
        self.steps.push(step);
        Ok(())
    }
}

/// Rejects a block with commands but without a language: it would not be executed.
fn check_other(open: &Open) -> Result<(), String> {
    let starts = |line: &str| PROGRAMS.iter().any(|program| line.starts_with(program));
    if open.language.is_empty() && open.text.lines().any(starts) {
        return Err(format!(
            "line {}: a block with commands has no language",
            open.line
        ));
    }
    Ok(())
}

/// Returns the lines of indented blocks that contain commands: they must be fenced, to be executed.
pub(crate) fn indented_commands(page: &str) -> Vec<usize> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let content = line.trim_start();
        if content.starts_with("```") {
            fenced = !fenced;
        }
        let indent = line.len() - content.len();
        if !fenced && indent >= 4 && PROGRAMS.iter().any(|program| content.starts_with(program)) {
            found.push(index + 1);
        }
    }
    found
}
