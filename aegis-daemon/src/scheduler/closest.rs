//! Which GPUs a job with several takes: those closest to each other.
//!
//! Ranks exchange gradients over the slowest way between any two of them, so a set is judged by its
//! longest way first, then by all of them together, then by the order in which a job with one GPU
//! would take them. The search is greedy from every GPU as the first; with the few levels there
//! are (NVLink, board, PCIe switch, …) whole groups are found whole.

use aegis_common::event::Link;
use aegis_common::id::GpuIndex;

use super::core::Core;

/// How good a set is: the longest way, the sum of all ways, the sum of places in the preferred
/// order. Smaller is better.
type Spread = (u32, u32, usize);

impl Core {
    /// Adds to `fixed` those of `candidates`, given in preferred order, that make it a set of
    /// `need` GPUs close to each other.
    pub(super) fn closest(
        &self,
        fixed: &[GpuIndex],
        candidates: &[GpuIndex],
        need: usize,
    ) -> Vec<GpuIndex> {
        let missing = need.saturating_sub(fixed.len());
        let known = |gpu: &GpuIndex| {
            let gpu = self.gpus.get(gpu);
            gpu.is_some_and(|gpu| !gpu.info.peers.is_empty())
        };
        if need < 2 || missing >= candidates.len() || !candidates.iter().any(known) {
            let first = candidates.iter().take(missing);
            return fixed.iter().chain(first).copied().collect();
        }
        let starts = 0..if fixed.is_empty() {
            candidates.len()
        } else {
            1
        };
        let sets = starts.map(|start| {
            let first = candidates.get(start).filter(|_| fixed.is_empty());
            let mut set: Vec<GpuIndex> = fixed.iter().chain(first).copied().collect();
            let mut spread: Spread = (0, 0, if fixed.is_empty() { start } else { 0 });
            while set.len() < need {
                let rest = candidates.iter().enumerate();
                let rest = rest.filter(|(_, gpu)| !set.contains(gpu));
                let nearest =
                    rest.map(|(place, &gpu)| (self.spread(spread, &set, gpu, place), gpu));
                let Some((wider, gpu)) = nearest.min() else {
                    break;
                };
                spread = wider;
                set.push(gpu);
            }
            (spread, set)
        });
        sets.min().map(|(_, set)| set).unwrap_or_default()
    }

    /// A set's figures with one more GPU.
    fn spread(&self, spread: Spread, set: &[GpuIndex], gpu: GpuIndex, place: usize) -> Spread {
        let ways = set.iter().map(|&other| self.way(gpu, other));
        let (longest, sum) = ways.fold((spread.0, spread.1), |(longest, sum), way| {
            (longest.max(way), sum + way)
        });
        (longest, sum, spread.2 + place)
    }

    /// A larger number is further; what NVML did not tell is furthest.
    fn way(&self, from: GpuIndex, to: GpuIndex) -> u32 {
        let peers = self.gpus.get(&from).map(|gpu| &gpu.info.peers);
        let peer = peers.and_then(|peers| peers.iter().find(|peer| peer.gpu == to));
        peer.map_or(7, |peer| match peer.link {
            Link::NvLink => 0,
            Link::Board => 1,
            Link::Switch => 2,
            Link::Switches => 3,
            Link::HostBridge => 4,
            Link::Node => 5,
            Link::System => 6,
        })
    }
}
