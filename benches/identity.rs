//! From arguments of 1 KB to a fingerprint: what every side-effecting call pays before it is written down.
//!
//! `cargo bench --no-default-features --bench identity`. The bound is 10 us; `serde_json` alone, parsing into a value that
//! forgets digits, is measured beside it.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use reattach::contract::{Class, Contract};
use reattach::identity::{Action, FingerprintKey, KeyId};

fn arguments() -> String {
    let items: Vec<String> = (0..12)
        .map(|n| {
            format!(
                r#"{{"sku":"item-{n:04}","quantity":{n},"price":{n}.25,"note":"caf\u00e9 {n}"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"to":"alice@example.com","amount":1250.50,"currency":"EUR","urgent":false,"items":[{}]}}"#,
        items.join(",")
    )
}

fn fingerprint(criterion: &mut Criterion) {
    let text = arguments();
    let mut group = criterion.benchmark_group(format!("{} bytes of arguments", text.len()));
    let key = FingerprintKey::new(KeyId(1), [7; 32]);
    let contract = Contract::of(Class::Irreversible);
    group.bench_function("fingerprint", |bencher| {
        bencher.iter(|| {
            let arguments = Action::arguments(Some(black_box(text.as_bytes()))).expect("JSON");
            let action = contract.action(
                "process:agent",
                "https://bank.example/mcp",
                "pay",
                arguments,
                &key,
            );
            key.fingerprint(&action.canonical())
        });
    });
    group.bench_function("serde_json, parsing only", |bencher| {
        bencher.iter(|| serde_json::from_str::<serde_json::Value>(black_box(&text)).expect("JSON"));
    });
    group.finish();
}

criterion_group!(benches, fingerprint);
criterion_main!(benches);
