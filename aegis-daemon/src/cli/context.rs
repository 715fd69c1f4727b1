//! What every verb gets besides its own arguments.

use std::path::PathBuf;

use super::client::Client;
use super::error::CliError;
use super::out::Out;
use super::socket;

/// Everything a verb needs besides its own arguments.
pub(super) struct Context<'a> {
    /// `--socket` or `AEGIS_SOCKET`.
    pub socket: Option<PathBuf>,
    /// Where output goes.
    pub out: &'a mut Out,
}

impl Context<'_> {
    /// A connection to the daemon, greeted.
    pub(super) fn connect(&self) -> Result<Client, CliError> {
        let path = socket::find(self.socket.as_deref())?;
        Ok(Client::connect(&path)?)
    }
}
