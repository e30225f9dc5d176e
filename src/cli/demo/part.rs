//! The parts of the demo.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tower::Layer;

use super::agent::{Told, call, connect};
use super::stage::Stage;
use super::{DemoError, machine};
use crate::chaos::{Cut, Fault, FaultPlan, FaultProxy, ServerOptions, TestServer};

/// The answer comes later than the client waits for it.
pub(super) async fn slow_gateway(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.part('a', "The answer takes 0.9 s, and the client waits for 0.4 s. A retry layer sends the call again.")?;
    let plan = FaultPlan::new().on_call(1, Fault::DelayAnswer(Duration::from_millis(900)));
    compare(stage, plan, json!({ "amount": 1, "to": "alice" }), |told| {
        told.text == "paid 1"
    })
    .await
}

/// The connection breaks after the server has acted: nothing can bring the answer back.
pub(super) async fn reset_after_the_deed(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.part(
        'b',
        "The server acts, and the connection is reset before a byte of its answer arrives.",
    )?;
    let plan = FaultPlan::new().on_call(1, Fault::LoseAnswer(Cut::Reset));
    compare(stage, plan, json!({ "amount": 2, "to": "bob" }), |told| {
        told.unknown
    })
    .await
}

/// The same stack and the same fault, without the layer and with it.
async fn compare(
    stage: &mut Stage<'_>,
    plan: FaultPlan,
    payment: Value,
    as_it_should: impl Fn(&Told) -> bool,
) -> Result<(), DemoError> {
    let (server, proxy) = start(plan.clone()).await?;
    let plain = connect(crate::client::builder().build(), &proxy.url()).await?;
    let told = call(&plain, "pay", payment.clone()).await;
    stage.side("with retries:", &told.short(), server.ledger())?;
    stage.claim(
        "the plain stack pays twice",
        server.ledger().effects().len() == 2,
    )?;
    let _ = plain.cancel().await;

    let (server, proxy) = start(plan).await?;
    let layer = stage.layer().await?;
    let agent = connect(layer.layer(crate::client::new()), &proxy.url()).await?;
    let told = call(&agent, "pay", payment).await;
    stage.side("with reattach:", &told.short(), server.ledger())?;
    stage.claim(
        "the same stack over the layer pays once",
        server.ledger().effects().len() == 1,
    )?;
    stage.claim("and the agent is told the truth", as_it_should(&told))?;
    let _ = agent.cancel().await;
    close(layer).await
}

/// A stream with progress, cut twice.
pub(super) async fn stream_cut_twice(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.part(
        'c',
        "A slow payment reports progress on a stream. The stream is cut twice.",
    )?;
    let plan = FaultPlan::new()
        .on_call(1, Fault::CutEvents(2, Cut::Reset))
        .on_resume(1, Fault::CutEvents(1, Cut::Reset));
    let (server, proxy) = start(plan).await?;
    let layer = stage.layer().await?;
    let agent = connect(layer.layer(crate::client::new()), &proxy.url()).await?;
    let told = call(
        &agent,
        "pay_slowly",
        json!({ "amount": 8, "to": "carol", "steps": 5, "step_ms": 80 }),
    )
    .await;
    stage.side("with reattach:", &told.short(), server.ledger())?;
    let resumes = proxy.traffic().resumes;
    stage.say(&format!(
        "    {:<16} resumed behind event {}",
        "",
        resumes.join(", then ")
    ))?;
    stage.claim(
        "the stream was cut twice and resumed each time",
        proxy.traffic().faults == 2 && resumes.len() >= 2,
    )?;
    stage.claim(
        "one payment, and its result arrived",
        server.ledger().balance() == 8 && told.text == "paid 8 slowly",
    )?;
    let _ = agent.cancel().await;
    close(layer).await
}

/// The agent's process is killed while its payment runs, and started again.
pub(super) async fn killed_and_started_again(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.part('d', "The agent is killed with SIGKILL while its payment runs. It is started again, and asks again.")?;
    let (server, proxy) = start(FaultPlan::new()).await?;
    let mut first = spawn(stage, &proxy)?;
    let process = first.id().unwrap_or_default();
    let paid = tokio::time::timeout(PROCESS_LIMIT, server.ledger().until(1)).await;
    paid.map_err(machine("the first agent did not pay"))?;
    tokio::time::sleep(SOME_EVENTS).await; // far enough for the stream to have begun
    first
        .kill()
        .await
        .map_err(machine("the first agent can't be killed"))?;
    stage.say(&format!(
        "    {:<16} process {} is gone; its answer went nowhere",
        "killed:", process
    ))?;

    let second = spawn(stage, &proxy)?.wait_with_output();
    let output = tokio::time::timeout(PROCESS_LIMIT, second)
        .await
        .map_err(machine("the second agent hangs"))?;
    let output = output.map_err(machine("the second agent can't be awaited"))?;
    let told: Value =
        serde_json::from_slice(&output.stdout).map_err(machine("the second agent said nothing"))?;
    let told = Told {
        text: told["text"].as_str().unwrap_or_default().to_owned(),
        unknown: told["unknown"] == true,
        failed: told["failed"] == true,
    };
    stage.side("started again:", &told.short(), server.ledger())?;
    stage.claim(
        "two processes, one payment",
        server.ledger().effects().len() == 1,
    )?;
    let honest = told.unknown || told.text == "paid 16";
    stage.claim(
        "the second process has the first one's result, or is told that it is unknown",
        honest,
    )
}

async fn start(plan: FaultPlan) -> Result<(TestServer, FaultProxy), DemoError> {
    let server = TestServer::start(ServerOptions::default())
        .await
        .map_err(machine("no port for the server"))?;
    let proxy = FaultProxy::start(server.address(), plan)
        .await
        .map_err(machine("no port for the proxy"))?;
    Ok((server, proxy))
}

fn spawn(stage: &Stage<'_>, proxy: &FaultProxy) -> Result<Child, DemoError> {
    let program = std::env::current_exe().map_err(machine("this program's file can't be found"))?;
    let mut command = Command::new(program);
    command
        .arg("demo-agent")
        .arg("--url")
        .arg(proxy.url())
        .arg("--dir")
        .arg(stage.journal_dir());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
        .spawn()
        .map_err(machine("the agent can't be started"))
}

async fn close(layer: crate::layer::ReattachLayer) -> Result<(), DemoError> {
    layer
        .shutdown(Duration::from_secs(5))
        .await
        .map_err(machine("the journal can't be flushed"))?;
    layer
        .journal()
        .close()
        .await
        .map_err(machine("the journal can't be closed"))
}

const PROCESS_LIMIT: Duration = Duration::from_secs(8);
const SOME_EVENTS: Duration = Duration::from_millis(200);
