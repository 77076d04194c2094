//! How long a scene takes, with criterion: short cells, so that all of them end within two minutes.

use std::time::Duration;

use criterion::Criterion;

use crate::scenes;

/// Measures the scenes of one group; the command line may filter them.
pub fn group(wanted: &str) {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .nresamples(5_000)
        .without_plots()
        .configure_from_args();
    for (name, scenes) in scenes::groups().into_iter().filter(|(name, _)| *name == wanted) {
        let mut group = criterion.benchmark_group(name);
        for (name, ready) in scenes {
            // Made when it is known to be wanted, once.
            let mut operation = None;
            group.bench_function(name.as_str(), |bencher| {
                let operation = operation.get_or_insert_with(&ready);
                assert!(operation(), "{name} does not go as it should");
                bencher.iter(&mut *operation);
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
