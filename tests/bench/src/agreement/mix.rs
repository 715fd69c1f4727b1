//! Twenty training jobs of four kinds, small and large, as they might arrive in an hour, with times
//! scaled down to seconds.

/// A job of the mix.
pub(super) struct MixJob {
    /// The workload's kind.
    pub(super) kind: &'static str,
    /// Its options.
    pub(super) options: &'static [&'static str],
    /// SM active, occupancy and DRAM active alone.
    pub(super) demand: [f64; 3],
    /// Its kind's preset.
    pub(super) preset: Preset,
}

/// What replay must know of a kind; `workload KIND --print-plan` tells.
#[derive(Clone, Copy)]
pub(super) struct Preset {
    /// From exec to the first driver call, s.
    pub(super) startup_s: f64,
    /// Its weights, MiB: what it holds at its first launch.
    pub(super) weights_mib: u64,
    /// What it holds after the first steps, MiB.
    pub(super) training_mib: u64,
    /// What it holds at most, in evaluations, MiB.
    pub(super) peak_mib: u64,
    /// Share of the work after which the first evaluation begins.
    pub(super) peak_at: f64,
}

const VISION_PRESET: Preset = Preset {
    startup_s: 1.0,
    weights_mib: 200,
    training_mib: 2_572,
    peak_mib: 3_072,
    peak_at: 0.45,
};
const ENCODER_PRESET: Preset = Preset {
    startup_s: 1.2,
    weights_mib: 820,
    training_mib: 5_492,
    peak_mib: 6_132,
    peak_at: 0.45,
};
const DECODER_PRESET: Preset = Preset {
    startup_s: 1.5,
    weights_mib: 2_560,
    training_mib: 13_452,
    peak_mib: 14_336,
    peak_at: 0.9,
};

/// Between two submissions.
pub(super) const ARRIVAL_MS: u64 = 400;

/// Convolutional network, small.
const SMALL: MixJob = MixJob {
    kind: "vision",
    options: &[
        "--loader-ms",
        "0",
        "--sm",
        "0.3",
        "--dram",
        "0.15",
        "--steps",
        "80",
    ],
    demand: [0.3, 0.35, 0.15],
    preset: VISION_PRESET,
};
/// Convolutional network.
const VISION: MixJob = MixJob {
    kind: "vision",
    options: &["--loader-ms", "0", "--steps", "80"],
    demand: [0.62, 0.35, 0.40],
    preset: VISION_PRESET,
};
/// Encoder at moderate batch size.
const ENCODER: MixJob = MixJob {
    kind: "transformer",
    options: &["--sm", "0.5", "--dram", "0.3", "--steps", "60"],
    demand: [0.5, 0.45, 0.3],
    preset: ENCODER_PRESET,
};
/// Encoder that fills the GPU.
const LARGE: MixJob = MixJob {
    kind: "transformer",
    options: &["--steps", "70"],
    demand: [0.9, 0.45, 0.45],
    preset: ENCODER_PRESET,
};
/// Decoder: most memory.
const DECODER: MixJob = MixJob {
    kind: "llm",
    options: &["--sm", "0.7", "--dram", "0.4", "--steps", "110"],
    demand: [0.7, 0.4, 0.4],
    preset: DECODER_PRESET,
};

/// The mix, in the order of submission.
pub(super) const MIX: [MixJob; 20] = [
    LARGE, SMALL, VISION, ENCODER, SMALL, DECODER, SMALL, ENCODER, VISION, SMALL, LARGE, ENCODER,
    SMALL, DECODER, VISION, SMALL, ENCODER, SMALL, LARGE, VISION,
];
