//! Who asks and how: what accompanies one request through the pipeline, beside the object itself.

use serde_json::Value;

use crate::auth::User;

/// What to do about fields the type does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them in silence.
    Ignore,
    /// Drop them and say so in a header.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

/// One request's company.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent yes/no facts about a request"
)]
pub struct Context {
    /// Who asks.
    pub user: User,
    /// Nothing is to be kept.
    pub dry_run: bool,
    /// The name under which fields are owned; from the query, else from the user agent.
    pub manager: String,
    /// Whether the query named the manager.
    pub manager_named: bool,
    /// `force=true` of an apply.
    pub force: bool,
    /// The write is a patch: a uid in it is no precondition.
    pub patched: bool,
    /// The write is a server-side apply: who owns what was settled when it was merged.
    pub applied: bool,
    /// The sent object says that nobody shall own its fields any more.
    pub resets_owners: bool,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// The subresource written to, empty for the object itself.
    pub subresource: String,
    /// Warnings for the reply's header.
    pub warnings: Vec<String>,
    /// Answers from outside (webhooks) that earlier tries of this request asked for, by question.
    pub answers: Vec<(Question, Value)>,
    /// What must be asked outside before this request can go on: the request is then tried again from the start.
    pub pending: Option<Question>,
}

/// Something only the outside can answer, such as a webhook's verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Who is asked: the webhook's address or registered name.
    pub to: String,
    /// What is sent.
    pub body: Value,
}

impl Context {
    /// The context of what the cluster's own controllers do.
    #[must_use]
    pub fn of_system(name: &str) -> Self {
        Self {
            user: User::system(name),
            manager: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a warning for the reply's header, once.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// The answer to `question`, or `None` after noting that it must be asked.
    pub fn ask(&mut self, question: Question) -> Option<Value> {
        if let Some((_, answer)) = self.answers.iter().find(|(asked, _)| *asked == question) {
            return Some(answer.clone());
        }
        self.pending = Some(question);
        None
    }
}
