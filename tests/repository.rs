//! What the repository itself promises: nothing in it belongs to one machine, and every file says what it is for.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The tracked files, or, where there is no repository (an unpacked crate), all but what a build makes.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output();
    if root().join(".git").exists()
        && let Ok(listed) = listed
        && listed.status.success()
    {
        let names = String::from_utf8(listed.stdout).unwrap();
        let names = names.split_terminator('\0').map(|name| root().join(name));
        return names.filter(|path| path.is_file()).collect();
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default();
        if path.is_file() {
            found.push(path);
        } else if name != "target" && name != ".git" {
            walk(&path, found);
        }
    }
}

/// Each line of each text file, with its place.
fn lines() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for path in files() {
        let Ok(text) = fs::read_to_string(&path) else {
            continue; // not text
        };
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        lines.extend(
            text.lines()
                .enumerate()
                .map(|(n, line)| (format!("{name}:{}", n + 1), line.to_owned())),
        );
    }
    assert!(lines.len() > 1000, "the files were found");
    lines
}

/// Written in two halves, so that this file does not hold what it looks for.
fn whole(halves: &[(&str, &str)]) -> Vec<String> {
    halves
        .iter()
        .map(|(one, other)| format!("{one}{other}"))
        .collect()
}

fn none_holds(words: &[String]) {
    for (place, line) in lines() {
        let line = line.to_lowercase();
        for word in words {
            assert!(!line.contains(word.as_str()), "{place} holds `{word}`");
        }
    }
}

#[test]
fn no_file_holds_a_path_of_one_machine() {
    none_holds(&whole(&[
        ("/ro", "ot/"),
        ("/ho", "me/"),
        ("/us", "ers/"),
        ("/wo", "rk/"),
        ("/tm", "p/"),
        ("c:", "\\"),
        (".carg", "o/registry"),
    ]));
}

/// A lock file names a registry by its canonical URL; a mirror of one machine would stand there, or in an address elsewhere.
#[test]
fn every_address_is_a_public_name_or_an_example() {
    // Public ones join the list when somebody has looked at them.
    let known = [
        "github.com",
        "json-schema.org",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "modelcontextprotocol.io",
        "no-color.org",
        "www.apache.org",
        "www.rfc-editor.org",
    ];
    let examples = [".example", ".test", ".invalid"];
    for (place, line) in lines() {
        for scheme in ["http://", "https://"] {
            for (at, _) in line.match_indices(scheme) {
                let rest = &line[at + scheme.len()..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !".-[:]".contains(c));
                let authority = &rest[..end.unwrap_or(rest.len())];
                let host = match authority.rsplit_once(':') {
                    Some((host, _)) if !authority.ends_with(']') => host,
                    _ => authority,
                };
                let host = host.trim_end_matches('.').to_lowercase();
                // A name without a dot is made up: `https://x/mcp`.
                let fine = !host.contains('.')
                    || known.contains(&host.as_str())
                    || examples.iter().any(|end| host.ends_with(end));
                assert!(
                    fine,
                    "{place} names the host `{host}`; if it is public, list it here"
                );
            }
        }
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for path in files() {
        let name = path.strip_prefix(root()).unwrap();
        let is_source = name.extension().is_some_and(|end| end == "rs")
            && ["src", "tests", "benches", "fuzz", "middleware-examples"]
                .iter()
                .any(|dir| name.starts_with(dir));
        if is_source {
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("//! "),
                "{} does not begin with its doc line",
                name.display()
            );
        }
    }
}

#[test]
fn the_readme_shows_the_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run -- demo", "cargo test"] {
        assert!(readme.contains(&format!("$ {command}\n")), "{command}");
    }
}

#[test]
fn the_documents_that_the_readme_names_are_there() {
    for name in ["README.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let is_file = !target.contains("://") && !target.starts_with('#');
            assert!(
                !is_file || root().join(target).exists(),
                "{name} links to {target}"
            );
        }
    }
}
