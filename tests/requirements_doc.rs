//! What the documents say of the tests is so: no number is missing, and each named test exists.
//!
//! A row is `| number | what | status | text |`. `shown` names tests and nothing that is missing, `partly` both, `open` says
//! only what is missing. A test is named as `` `file::name` ``.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

struct Row {
    number: usize,
    status: String,
    tests: Vec<(String, String)>,
    /// The text besides the tests: what is missing.
    rest: String,
}

/// The numbered rows of the document's tables.
fn rows(document: &str) -> Vec<Row> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join(document)).expect("the document is there");
    let mut rows = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, what, status, shown_by] = cells[..] else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        assert!(!what.is_empty(), "{document}: {number} says nothing");
        let (mut tests, mut rest) = (Vec::new(), String::new());
        for (n, piece) in shown_by.split('`').enumerate() {
            match piece.split_once("::") {
                Some((file, name)) if n % 2 == 1 => tests.push((file.into(), name.into())),
                _ => rest.push_str(piece),
            }
        }
        rows.push(Row {
            number,
            status: status.into(),
            tests,
            rest: rest.replace(", ", "").trim().into(),
        });
    }
    rows
}

/// Whether the file has a function of this name whose attributes make it a test.
fn is_test(file: &str, name: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let Ok(text) = fs::read_to_string(path) else {
        return false;
    };
    let Some(at) = text.find(&format!("fn {name}(")) else {
        return false;
    };
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[..line_start]
        .lines()
        .rev()
        .map(str::trim)
        .take_while(|line| line.starts_with("#["))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Fails where a number is missing or a row is not what its status means.
fn check(document: &str, numbers: usize) {
    let rows = rows(document);
    let found: Vec<usize> = rows.iter().map(|row| row.number).collect();
    assert_eq!(found, (1..=numbers).collect::<Vec<_>>(), "{document}");
    for row in &rows {
        let number = row.number;
        for (file, name) in &row.tests {
            assert!(
                is_test(file, name),
                "{document}: {number} names {file}::{name}, which is no test"
            );
        }
        let (has_tests, lacks) = (!row.tests.is_empty(), !row.rest.is_empty());
        let fits = match row.status.as_str() {
            "shown" => has_tests && !lacks,
            "partly" => has_tests && lacks,
            "open" => !has_tests && lacks,
            _ => false,
        };
        assert!(
            fits,
            "{document}: {number} is not what `{}` means",
            row.status
        );
    }
    counts(document, &rows);
}

/// The first table of the document counts the rows of the others.
fn counts(document: &str, rows: &[Row]) {
    let count = |status| rows.iter().filter(|row| row.status == status).count();
    let line = format!(
        "| {} | {} | {} |",
        count("shown"),
        count("partly"),
        count("open")
    );
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    assert!(
        text.lines().any(|l| l == line),
        "{document}: the counts are {line}"
    );
}

#[test]
fn every_requirement_has_its_tests_or_says_what_is_missing() {
    check("docs/requirements.md", 110);
}

#[test]
fn every_case_has_its_tests_or_says_what_is_missing() {
    check("docs/cases.md", 36);
}
