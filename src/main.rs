//! The `reattach` command.

fn main() -> std::process::ExitCode {
    reattach::cli::main()
}
