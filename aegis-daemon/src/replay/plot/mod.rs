//! Replays as pictures: self-contained SVG that reads well on light and dark ground.
//!
//! ```text
//!   timeline   a lane per GPU: attempts, how they ended, memory and SM activity
//!   scatter    makespan against slowdown, a dot per policy
//!   over_time  memory and SM activity of the machine, a line per policy
//! ```

mod axis;
mod over_time;
mod scatter;
mod svg;
mod timeline;

pub use over_time::over_time;
pub use scatter::{Dot, scatter};
pub use timeline::timeline;
