//! `reattach contract` from outside: skeleton, check, explanation and difference.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

use std::path::Path;
use std::process::Output;

use reattach::chaos::{ServerOptions, TestServer};
use serde_json::Value;

async fn reattach(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_reattach"));
    command
        .args(arguments)
        .current_dir(dir)
        .env_remove("REATTACH_CONFIG")
        .output()
        .await
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn lines(output: &Output) -> Vec<Value> {
    stdout(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skeleton_of_a_live_server_parses_and_is_not_ready_until_its_questions_are_answered() {
    let server = TestServer::start(ServerOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let without = reattach(dir.path(), &["contract", "check", "--url", &server.url()]).await;
    assert_eq!(without.status.code(), Some(1));
    assert!(
        lines(&without)
            .iter()
            .all(|tool| tool["ready"] == false && tool["class"] == "irreversible")
    );

    let skeleton = reattach(dir.path(), &["contract", "init", "--url", &server.url()]).await;
    assert_eq!(
        skeleton.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&skeleton.stderr)
    );
    let skeleton = stdout(&skeleton);
    assert!(
        skeleton.contains("the server says: read-only")
            && skeleton.contains("[servers.main.tools.\"pay\"]"),
        "{skeleton}"
    );
    std::fs::write(dir.path().join("reattach.toml"), &skeleton).unwrap();
    let unanswered = reattach(dir.path(), &["contract", "check", "--url", &server.url()]).await;
    assert_eq!(
        unanswered.status.code(),
        Some(1),
        "a skeleton answers nothing"
    );

    let answered = skeleton
        .replace(
            "# ? credential_ref = \"a name, never a token\"",
            "credential_ref = \"bank-main\"",
        )
        .replace("# ? fingerprint", "fingerprint");
    std::fs::write(dir.path().join("reattach.toml"), answered).unwrap();
    let junit = dir.path().join("check.xml");
    let ready = reattach(
        dir.path(),
        &[
            "contract",
            "check",
            "--url",
            &server.url(),
            "--junit",
            junit.to_str().unwrap(),
        ],
    )
    .await;
    assert_eq!(ready.status.code(), Some(0), "{}", stdout(&ready));
    assert_eq!(lines(&ready).len(), 7);
    assert!(
        std::fs::read_to_string(junit)
            .unwrap()
            .contains("tests=\"7\" failures=\"0\"")
    );
}

const FILE: &str = r#"
[tools.pay]
class = "irreversible"
credential_ref = "bank"
fingerprint.defaults = { "/currency" = "EUR" }
fingerprint.ignore = ["/sent_at"]
fingerprint.secret = ["/pin"]
"#;

#[tokio::test]
async fn a_call_is_explained_with_its_secrets_masked() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bank.toml"), FILE).unwrap();
    let words = [
        "--config",
        "bank.toml",
        "contract",
        "explain",
        "pay",
        "--args",
        r#"{"amount":1.0,"pin":"4711","sent_at":9}"#,
    ];
    let explained = reattach(dir.path(), &words).await;
    assert_eq!(explained.status.code(), Some(0));
    assert!(!stdout(&explained).contains("4711"));
    let explained = lines(&explained).remove(0);
    assert_eq!(explained["record"]["arguments"]["currency"], "EUR");
    assert_eq!(explained["record"]["arguments"]["amount"], 1);
    assert!(explained["record"]["arguments"].get("sent_at").is_none());
    assert_eq!(explained["faults"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn the_fingerprint_is_the_one_that_the_journal_would_find() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("reattach.toml"), FILE).unwrap();
    let explain = |more: &'static [&'static str]| {
        let dir = dir.path().to_owned();
        async move {
            let words = [
                &[
                    "--journal",
                    "journal",
                    "contract",
                    "explain",
                    "pay",
                    "--args",
                    r#"{"amount":1}"#,
                ][..],
                more,
            ]
            .concat();
            lines(&reattach(&dir, &words).await).remove(0)
        }
    };
    let nowhere = explain(&["--actor", "process:a"]).await;
    assert!(nowhere["fingerprint"].is_null() && nowhere["no_fingerprint_because"].is_string());
    assert!(
        !dir.path().join("journal").exists(),
        "looking makes no journal"
    );

    let options = reattach::journal::JournalOptions::new(dir.path().join("journal"));
    let journal = reattach::journal::Journal::open(options).await.unwrap();
    let contracts = reattach::contract::Contracts::from_toml("f", FILE).unwrap();
    let key = journal.fingerprint_key().clone();
    let arguments = reattach::identity::json::parse(br#"{"amount":1.0}"#).unwrap();
    let action = contracts.find("http://localhost/", "pay").action(
        "process:a",
        "http://localhost/",
        "pay",
        arguments,
        &key,
    );
    let wanted = key.fingerprint(&action.canonical()).to_string();
    let busy = explain(&["--actor", "process:a"]).await;
    assert!(
        busy["no_fingerprint_because"]
            .as_str()
            .unwrap()
            .contains("belongs to process"),
        "{busy}"
    );
    journal.close().await.unwrap();
    drop(journal);
    assert_eq!(
        explain(&["--actor", "process:a"]).await["fingerprint"],
        wanted
    );
    assert_ne!(
        explain(&["--actor", "process:b"]).await["fingerprint"],
        wanted
    );
}

#[tokio::test]
async fn a_difference_is_told_by_names_and_never_by_values() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("reattach.toml"), FILE).unwrap();
    let diff = |one: &'static str, other: &'static str| {
        let dir = dir.path().to_owned();
        async move {
            reattach(
                &dir,
                &["contract", "diff", "pay", "--args", one, "--args", other],
            )
            .await
        }
    };
    let same = diff(
        r#"{"amount":1,"sent_at":1}"#,
        r#"{"sent_at":2,"amount":1.0,"currency":"EUR"}"#,
    )
    .await;
    assert_eq!(same.status.code(), Some(0), "{}", stdout(&same));
    let other = diff(
        r#"{"amount":1,"pin":"planted-a"}"#,
        r#"{"amount":22222,"pin":"planted-b","note":"planted-c"}"#,
    )
    .await;
    assert_eq!(other.status.code(), Some(1));
    let text = stdout(&other);
    assert!(
        !text.contains("planted") && !text.contains("22222"),
        "{text}"
    );
    let fields = lines(&other).remove(0)["fields"].clone();
    assert_eq!(
        fields,
        serde_json::json!(["/amount", "/note (only in the second)", "/pin"])
    );
}

#[tokio::test]
async fn a_wrong_file_is_a_usage_error_that_says_where() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("reattach.toml"),
        "[tools.pay]\nclass = \"irreversible\"\nretension = \"1d\"\n",
    )
    .unwrap();
    let wrong = reattach(dir.path(), &["contract", "check"]).await;
    assert_eq!(wrong.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        stderr.contains("reattach.toml:3:1") && stderr.contains("did you mean `retention`?"),
        "{stderr}"
    );
    let nowhere = reattach(
        dir.path(),
        &["--config", "absent.toml", "contract", "check"],
    )
    .await;
    assert_eq!(nowhere.status.code(), Some(2));
}
