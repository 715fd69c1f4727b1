//! The one task that owns all state.
