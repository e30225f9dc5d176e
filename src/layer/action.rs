//! What a tool call does: its contract, its identity, and what it takes to send it.

use bytes::Bytes;
use http::request;

use super::Intent;
use super::call::{Call, correlation};
use super::shared::Shared;
use crate::contract::{Channel, Contract};
use crate::identity::Action;
use crate::journal::NewExecution;
use crate::wire::{KeyPlace, Revision, Slot, ToolCall, accepts, session, target};

/// The contract that somebody wrote; else the class that a trusted server's annotations amount to; else the strictest.
pub(super) fn contract_of(shared: &Shared, head: &request::Parts, call: &ToolCall<'_>) -> Contract {
    let target = target(&head.uri);
    if let Some(written) = shared.contracts.written(&target, call.tool()) {
        return written.clone();
    }
    let trusted = shared.contracts.trusts_annotations(&target);
    let learned = trusted
        .then(|| {
            shared
                .learned
                .class(&target, session(&head.headers).as_ref(), call.tool())
        })
        .flatten();
    learned.map_or_else(
        || shared.contracts.find(&target, call.tool()).clone(),
        Contract::of,
    )
}

/// What a call does, and what it takes to send it. The reason when that can't be told for certain.
pub(super) fn action(
    shared: &Shared,
    contract: &Contract,
    call: &ToolCall<'_>,
    head: &request::Parts,
    body: &Bytes,
) -> Result<Call, String> {
    let (key_header, key_place) = match contract
        .idempotency
        .as_ref()
        .map(|idempotency| &idempotency.channel)
    {
        Some(Channel::Header(name)) => (Some(name.clone()), None),
        Some(Channel::Argument(name)) => (None, Some(KeyPlace::Argument(name))),
        Some(Channel::Meta(name)) => (None, Some(KeyPlace::Meta(name))),
        None => (None, None),
    };
    let slot = Slot::find(body, key_place).map_err(|error| error.to_string())?;
    let arguments = Action::arguments(call.arguments())
        .map_err(|error| format!("its arguments are {error}"))?;
    let key = shared.journal.fingerprint_key();
    let action = contract.action(
        &shared.actor,
        &target(&head.uri),
        call.tool(),
        arguments,
        key,
    );
    let named = head
        .extensions
        .get::<Intent>()
        .map(Intent::as_str)
        .or(call.intent());
    let new = NewExecution {
        fingerprint: key.fingerprint(&action.canonical()),
        tool: action.tool,
        class: contract.class,
        actor: action.actor,
        run_id: shared.run,
        target: action.target,
        credential_ref: action.credential_ref,
        intent_scope: contract.scope,
        intent: named.map(|intent| key.digest("intent", intent.as_bytes())),
    };
    Ok(Call {
        body: body.clone(),
        slot,
        key_header,
        continues: call.continues(),
        accepts: accepts(&head.headers),
        revision: Revision::of(&head.headers),
        correlation: correlation(call.id().clone(), &head.headers),
        window: contract.window,
        on_open_match: contract.on_open_match,
        session_404: contract.session_404,
        limits: shared.limits.with(&contract.limits),
        new,
        head: head.clone(),
    })
}
