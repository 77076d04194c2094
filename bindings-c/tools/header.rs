//! Writes `mirab.h` from the sources beside it: `header PATH`.

use std::path::Path;

use cbindgen::{Builder, Config};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: header PATH")?;
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = Config::from_file(home.join("cbindgen.toml"))?;
    let macros = config.after_includes.unwrap_or_default();
    config.after_includes = Some(format!("{macros}\n{}", version_macros()));
    let header = Builder::new().with_config(config).with_crate(home).generate()?;
    header.write_to_file(path);
    Ok(())
}

/// The version of Cargo.toml, in parts and as one number that grows with it.
fn version_macros() -> String {
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    format!(
        "/* The version of this header. The number packs it into one that can be compared. */\n\
         #define MIRAB_VERSION_MAJOR {major}\n\
         #define MIRAB_VERSION_MINOR {minor}\n\
         #define MIRAB_VERSION_PATCH {patch}\n\
         #define MIRAB_VERSION_NUMBER \\\n  \
         ((MIRAB_VERSION_MAJOR << 16) | (MIRAB_VERSION_MINOR << 8) | MIRAB_VERSION_PATCH)"
    )
}
