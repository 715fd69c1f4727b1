//! Programs that need more CPU cores than there are.

/// One program's loaders.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct Loader {
    /// Cores it would keep busy at the speed its GPUs allow.
    pub(in crate::replay) demand: f64,
    /// The share of its demand it gets; written by [`share_cores`].
    pub(in crate::replay) share: f64,
}

/// Shares `cores` evenly (max-min): who asks for no more than an even share gets all it asks for,
/// the others split the rest. Returns the sum of the demands.
pub(in crate::replay) fn share_cores(loaders: &mut [Loader], cores: f64) -> f64 {
    let total: f64 = loaders.iter().map(|loader| loader.demand).sum();
    if total <= cores {
        for loader in loaders.iter_mut() {
            loader.share = 1.0;
        }
        return total;
    }
    let mut order: Vec<usize> = (0..loaders.len()).collect();
    let demand = |index: &usize| loaders.get(*index).map_or(0.0, |loader| loader.demand);
    order.sort_by(|a, b| demand(a).total_cmp(&demand(b)));
    let mut left = cores;
    for (position, index) in order.iter().enumerate() {
        let even = left / (loaders.len() - position) as f64;
        if let Some(loader) = loaders.get_mut(*index) {
            let given = loader.demand.min(even);
            left -= given;
            loader.share = if loader.demand > 0.0 {
                given / loader.demand
            } else {
                1.0
            };
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{Loader, share_cores};

    fn shares(demands: &[f64], cores: f64) -> Vec<f64> {
        let loader = |&demand: &f64| Loader { demand, share: 1.0 };
        let mut loaders: Vec<Loader> = demands.iter().map(loader).collect();
        share_cores(&mut loaders, cores);
        loaders.iter().map(|loader| loader.share).collect()
    }

    #[test]
    fn the_modest_are_served_and_the_rest_split_evenly() {
        assert_eq!(shares(&[2.0, 4.0], 6.0), [1.0, 1.0]);
        assert_eq!(shares(&[2.0, 8.0, 4.0], 10.0), [1.0, 0.5, 1.0]);
        assert_eq!(shares(&[8.0, 8.0, 0.0], 8.0), [0.5, 0.5, 1.0]);
        assert_eq!(shares(&[], 8.0), [0.0_f64; 0]);
    }
}
