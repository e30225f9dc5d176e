//! Strict JSON for the canonical form.
