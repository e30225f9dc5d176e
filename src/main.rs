//! The `reattach` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use reattach::cli::demo::{self, AgentArgs};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the main job on real sockets.
    Demo,
    #[command(hide = true)]
    DemoAgent(AgentArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut out = std::io::stdout();
    let done = match Args::parse().command {
        Command::Demo => demo::run(&mut out, true).await,
        Command::DemoAgent(args) => demo::agent(&args, &mut out).await.map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::from(3)
        }
    }
}
