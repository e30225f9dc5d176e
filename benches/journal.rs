//! The journal against a plain log: entries of 1 KB, durable, by 1, 8 and 64 writers at once.
//!
//! The plain log is what nothing durable can beat by much: one thread takes whatever waits, appends it to a file, calls
//! `fdatasync` and wakes the writers. The journal does the same work and, on top, checks each step, chains the entries
//! and keeps them in sled. Rounds of the two alternate (ABAB), so that a noisy machine disturbs both alike;
//! the ratio is the median over pairs of neighbouring rounds.
//!
//! `cargo bench --no-default-features --bench journal [-- SECONDS_PER_ROUND ROUNDS DIRECTORY]`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark asks the clock and prints"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails may stop")]

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use reattach::clock::{Clock, SystemClock};
use reattach::contract::Class;
use reattach::execution::Priors;
use reattach::identity::{Correlation, IntentScope, RequestId, RunId};
use reattach::journal::{Event, Journal, JournalOptions, Lease, NewExecution};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let seconds = args.next().map_or(2.0, |text| text.parse().unwrap());
    let rounds: usize = args.next().map_or(5, |text| text.parse().unwrap());
    let parent = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let round = Duration::from_secs_f64(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();

    println!(
        "{rounds} rounds of {seconds} s each, in {}",
        parent.display()
    );
    println!("writers  plain log/s  journal/s  median ratio  ratios by round");
    for writers in [1, 8, 64] {
        let (mut plain, mut journal, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let dir = tempfile::tempdir_in(&parent).unwrap();
            plain.push(runtime.block_on(plain_log(&runtime, dir.path(), writers, round)));
            let dir = tempfile::tempdir_in(&parent).unwrap();
            journal.push(runtime.block_on(journal_log(&runtime, dir.path(), writers, round)));
            ratios.push(journal.last().unwrap() / plain.last().unwrap());
        }
        let by_round: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!(
            "{writers:>7}  {:>11.0}  {:>9.0}  {:>12.2}  {}",
            median(plain),
            median(journal),
            median(ratios),
            by_round.join(" ")
        );
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Runs `writers` tasks that each append again and again; returns appends per second.
async fn rate<F>(
    runtime: &Runtime,
    writers: usize,
    round: Duration,
    task: impl Fn(usize, Instant) -> F,
) -> f64
where
    F: Future<Output = u64> + Send + 'static,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|n| runtime.spawn(task(n, start + round)))
        .collect();
    let mut appended = 0;
    for task in tasks {
        appended += task.await.unwrap();
    }
    appended as f64 / start.elapsed().as_secs_f64()
}

async fn plain_log(runtime: &Runtime, dir: &Path, writers: usize, round: Duration) -> f64 {
    let log = Arc::new(PlainLog::default());
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("log"))
        .unwrap();
    let committer = std::thread::spawn({
        let log = log.clone();
        move || log.run(file)
    });
    let rate = rate(runtime, writers, round, |_, end| {
        let log = log.clone();
        async move {
            let mut appended = 0;
            while Instant::now() < end {
                log.append(vec![b'x'; ENTRY_BYTES]).await;
                appended += 1;
            }
            appended
        }
    })
    .await;
    log.close();
    committer.join().unwrap();
    rate
}

async fn journal_log(runtime: &Runtime, dir: &Path, writers: usize, round: Duration) -> f64 {
    let journal = Journal::open(JournalOptions::new(dir.join("journal")))
        .await
        .unwrap();
    let mut leases = Vec::new();
    for n in 0..writers {
        leases.push(Arc::new(lease(&journal, n).await));
    }
    let rate = rate(runtime, writers, round, |n, end| {
        let lease = leases[n].clone();
        async move {
            let mut appended = 0;
            while Instant::now() < end {
                lease
                    .append(Event::Ignored {
                        what: "x".repeat(ENTRY_BYTES - AROUND_EVENT_BYTES),
                    })
                    .await
                    .unwrap();
                appended += 1;
            }
            appended
        }
    })
    .await;
    drop(leases);
    journal.close().await.unwrap();
    rate
}

async fn lease(journal: &Journal, n: usize) -> Lease {
    let new = NewExecution {
        fingerprint: journal.fingerprint_key().fingerprint(&n.to_be_bytes()),
        tool: "pay".into(),
        class: Class::Irreversible,
        actor: "bench".into(),
        run_id: RunId::generate(SystemClock.now()),
        target: "https://bank.example/mcp".into(),
        credential_ref: None,
        intent_scope: IntentScope::Actor,
        intent: None,
    };
    let by = Correlation::new(RequestId::Number(1.into()), None, None);
    journal
        .accept(new, &Priors::default(), &by)
        .await
        .unwrap()
        .spend()
}

/// An entry, and who waits for it.
type Append = (Vec<u8>, oneshot::Sender<()>);

/// Append, `fdatasync`, wake: a group commit with nothing else in it.
#[derive(Default)]
struct PlainLog {
    waiting: Mutex<(Vec<Append>, bool)>,
    changed: Condvar,
}

impl PlainLog {
    async fn append(&self, entry: Vec<u8>) {
        let (waiter, news) = oneshot::channel();
        self.waiting.lock().unwrap().0.push((entry, waiter));
        self.changed.notify_one();
        news.await.unwrap();
    }

    fn close(&self) {
        self.waiting.lock().unwrap().1 = true;
        self.changed.notify_one();
    }

    fn run(&self, mut file: File) {
        loop {
            let idle = |waiting: &mut (Vec<_>, bool)| waiting.0.is_empty() && !waiting.1;
            let mut waiting = self
                .changed
                .wait_while(self.waiting.lock().unwrap(), idle)
                .unwrap();
            let group = std::mem::take(&mut waiting.0);
            drop(waiting);
            if group.is_empty() {
                return;
            }
            let bytes: Vec<u8> = group
                .iter()
                .flat_map(|(entry, _)| entry.iter().copied())
                .collect();
            file.write_all(&bytes).unwrap();
            file.sync_data().unwrap();
            for (_, waiter) in group {
                let _ = waiter.send(());
            }
        }
    }
}

const ENTRY_BYTES: usize = 1024;
/// What an entry has around the text of `Ignored`: its frame's fields and the JSON.
const AROUND_EVENT_BYTES: usize = 69 + r#"{"event":"ignored","what":""}"#.len();
