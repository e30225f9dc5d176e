//! Executions as a table.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

use super::escape;
use crate::clock::rfc3339_millis;
use crate::execution::State;
use crate::journal::ExecutionRecord;

/// A row per execution.
#[must_use]
pub fn executions(records: &[ExecutionRecord], colour: bool) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "EXECUTION",
        "ACCEPTED",
        "TOOL",
        "CLASS",
        "SENT",
        "RESUMED",
        "REATTACHED",
        "STATE",
    ]);
    for record in records {
        table.add_row([
            Cell::new(record.execution_id),
            Cell::new(rfc3339_millis::format(record.accepted_at)),
            Cell::new(escape(&record.tool)),
            Cell::new(record.class),
            Cell::new(record.dispatches.len()),
            Cell::new(record.resumes),
            Cell::new(record.reattached),
            state(record.state, colour),
        ]);
    }
    table.to_string()
}

/// An unresolved state is seen without colour too: by its mark.
fn state(state: State, colour: bool) -> Cell {
    let text = if state == State::OutcomeUnknown {
        format!("! {state}")
    } else {
        state.to_string()
    };
    let cell = Cell::new(text);
    if !colour {
        return cell;
    }
    match state {
        State::OutcomeUnknown => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        State::Dispatched
        | State::InputRequired
        | State::Working
        | State::CompletedResultNotDelivered => cell.fg(Color::Yellow),
        State::CompletedResultDelivered => cell.fg(Color::Green),
        State::Accepted
        | State::Authorized
        | State::Denied
        | State::NotExecuted
        | State::Cancelled => cell,
    }
}
