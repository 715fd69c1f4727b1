#![cfg_attr(not(feature = "std"), no_std)]
//! What the AEGIS daemon, shim and clients share: the shared-memory ABI, events, reason codes and the wire protocol.
